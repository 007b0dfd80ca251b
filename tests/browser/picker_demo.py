"""Serves pickers alone, in the sidebar and on the page, with a count of the script's runs."""

import streamlit as st

from interp.ui.picker import Group, Option, pick

HOSTILE = '<img src=x onerror="window.stolen=1">'
MODELS = (
    Group(
        "EfficientNet-Lite",
        (
            Option(
                "efficientnet_lite0",
                "EfficientNet-Lite0",
                detail="4.7 M",
                right="75.5 %",
                badge="bundled",
                dot="good",
            ),
        ),
    ),
    Group(
        "ResNet",
        tuple(
            Option(f"resnet{n}", f"ResNet-{n}", False, size, right, badge, dot)
            for n, size, right, badge, dot in (
                (18, "11.7 M", "69.8 %", "45 MB", "plain"),
                (34, "21.8 M", "73.3 %", "83 MB", "plain"),
                (50, "25.6 M", "80.9 %", "on disk", "good"),
                (101, "44.5 M", "81.9 %", "171 MB", "plain"),
            )
        ),
    ),
    Group(
        "Vision Transformer",
        (
            Option("vit_b_16", "ViT-B/16", detail="86.6 M", right="81.1 %", badge="331 MB"),
            Option(
                "vit_h_14",
                "ViT-H/14",
                detail="633.5 M",
                badge="unavailable",
                dot="off",
                disabled=True,
                reason="Its weights are 2.4 GB and this disk has 1.1 GB left.",
            ),
            Option("untrained", "Untrained", badge="random", dot="warn"),
            Option("hostile", HOSTILE, detail=HOSTILE, badge=HOSTILE, right=HOSTILE),
        ),
    ),
)


def layers() -> tuple[Group, ...]:
    """Nine stages, a long path, a layer without a grid and the recommended one."""
    best = "the last map with a grid: the network's own summary of the picture"
    rows = [
        Option(
            f"features.{i}",
            f"features.{i}",
            mono=True,
            detail="Conv2dNormActivation" if i in (0, 8) else "Sequential",
            right=f"{(32, 16, 24, 40, 80, 112, 192, 320, 1280)[i]} × {112 >> i // 2} × 7",
            star=i == 8,
            reason=best if i == 8 else "",
        )
        for i in range(9)
    ]
    long = "encoder.layers.encoder_layer_11.self_attention.out_proj"
    rows.append(Option(long, long, mono=True, detail="Linear", right="197 × 768"))
    why = "a vector has no place for a heatmap"
    head = Option("classifier.1", "classifier.1", True, "Linear", "1000", disabled=True, reason=why)
    return Group("features", tuple(rows)), Group("classifier", (head,))


def classes() -> tuple[Group, ...]:
    """A thousand classes, three of them predicted."""
    odds = {"espresso": "95.7 %", "cup": "1.4 %", "consommé": "0.7 %"}
    names = [*odds, "espresso maker", "mountain tent", "Afghan hound"]
    names += [f"kind {i} of thing" for i in range(len(names), 1000)]
    options = [Option(str(i), n, False, str(i), odds.get(n, "")) for i, n in enumerate(names)]
    return Group("Predicted", tuple(options[:3])), Group("All classes", tuple(options[3:]))


GROUPS = {"model": MODELS, "target": classes(), "layer": layers(), "empty": ()}
START = {"model": "efficientnet_lite0", "target": "0", "layer": "features.8", "empty": ""}


def show(label: str, name: str, key: str = "", help: str = "", width: int | None = None) -> None:
    def chosen(value: str) -> None:
        st.session_state.picks.append(f"{name}={value}")
        if not st.session_state.refuse:
            st.session_state.view[name] = value

    value = st.session_state.view[name]
    what = {"model": "models", "target": "1,000 classes", "layer": "layers", "empty": "…"}[name]
    pick(
        label,
        GROUPS[name],
        value,
        key=key or name,
        on_pick=chosen,
        help=help,
        placeholder=f"Search {what}",
        width=width or "stretch",
    )


def main() -> None:
    st.set_page_config(layout="wide", initial_sidebar_state="expanded")
    state = st.session_state
    state.setdefault("view", dict(START))
    state.setdefault("picks", [])
    state.setdefault("refuse", False)
    state.runs = state.get("runs", 0) + 1
    with st.sidebar:
        st.selectbox("Streamlit’s own", ["espresso", "cup"], help="For comparison.")
        show("Model", "model", help="Accuracy is the published top-1 on ImageNet.\nA dot: ready.")
        show("Explain the class", "target")
    st.text(f"runs: {state.runs}")
    # Written before the pickers are drawn: a pick is known when the script begins.
    st.text(f"view: {state.view['model']} {state.view['target']} {state.view['layer']}")
    st.text(f"picks: {' '.join(state.picks)}")
    st.button("Run again")
    for n in (50, 101):
        st.button(f"Choose ResNet-{n}", on_click=state.view.update, args=[{"model": f"resnet{n}"}])
    st.checkbox("Refuse", key="refuse")
    show("Layer", "layer", help="Where in the network to look.")
    show("Small", "layer", key="small", width=260)
    with st.popover("More"):
        show("Against the class", "target", key="against")
    show("Nothing yet", "empty")
    st.container(height=300)
    show("Low on the page", "target", key="low")
    st.text("end")


main()
