// The «?» beside the label: a tooltip for pointer, keyboard and finger.

/** Put a tooltip over its mark, or under it at the window's top. */
function placeTip(tip, mark) {
  const box = mark.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = box.left + box.width / 2 - width / 2;
  const top = box.top - height - GAP;
  tip.style.left = `${Math.max(Math.min(left, innerWidth - width - EDGE), EDGE)}px`;
  tip.style.top = `${top < EDGE ? box.bottom + GAP : top}px`;
}

function connectHelp(mark, tip) {
  const hide = () => tip.hidePopover();
  const reveal = () => {
    tip.showPopover();
    placeTip(tip, mark);
  };
  for (const event of ["pointerenter", "focus", "click"]) mark.addEventListener(event, reveal);
  for (const event of ["pointerleave", "blur"]) mark.addEventListener(event, hide);
  mark.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
