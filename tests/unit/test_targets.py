from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from math import exp, log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from interp.errors import ModelError, TargetError
from interp.targets import Target, class_names, find_logits, parse_target, probabilities

NAMES = ("tabby", "tiger cat", "jack-o'-lantern", "black-and-tan coonhound", "crane", "crane")


def read(text, names=NAMES):
    target = parse_target(text, names)
    return target.index, target.against, target.scale


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (None, (None, None, "logit")),
        ("", (None, None, "logit")),
        ("  ", (None, None, "logit")),
        (":prob", (None, None, "prob")),
        (" : logprob ", (None, None, "logprob")),
        (0, (0, None, "logit")),
        ("0", (0, None, "logit")),
        ("5", (5, None, "logit")),
        ("tabby", (0, None, "logit")),
        ("Tiger Cat", (1, None, "logit")),
        ("tabby:prob", (0, None, "prob")),
        ("tabby : logprob", (0, None, "logprob")),
        ("tabby:logit", (0, None, "logit")),
        ("0-1", (0, 1, "logit")),
        ("0 − 1", (0, 1, "logit")),
        ("0-1:prob", (0, 1, "prob")),
        ("1-1", (1, 1, "logit")),
        ("tabby-tiger cat", (0, 1, "logit")),
        ("tabby - 5 :logprob", (0, 5, "logprob")),
        ("4-tabby", (4, 0, "logit")),
        ("jack-o'-lantern", (2, None, "logit")),
        ("black-and-tan coonhound", (3, None, "logit")),
        ("jack-o'-lantern-black-and-tan coonhound", (2, 3, "logit")),
        ("tabby-jack-o'-lantern", (0, 2, "logit")),
        ("jack-o'-lantern-0", (2, 0, "logit")),
    ],
)
def test_the_grammar(text, meaning):
    assert read(text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6", "no class has the index 6, the model's classes are 0 to 5"),
        (-1, "no class has the index -1, the model's classes are 0 to 5"),
        ("tabby-6", "no class has the index 6, the model's classes are 0 to 5"),
        ("6-tabby", "no class has the index 6, the model's classes are 0 to 5"),
        ("crane", "2 classes are named «crane»: write the index, one of 4, 5"),
        ("tabby-crane", "2 classes are named «crane»: write the index, one of 4, 5"),
        ("taby", "no class is named «taby»: did you mean tabby?"),
        ("Cat", "no class is named «Cat»: did you mean tiger cat?"),
        ("tabby-", "no class is named «tabby-»: did you mean tabby?"),
        ("zebra", "no class is named «zebra»: write its index or its exact name"),
        ("tabby:odds", "no class is named «tabby:odds»: did you mean tabby?"),
        (1.5, "no class is named «1.5»: write its index or its exact name"),
        ("²", "no class is named «²»: write its index or its exact name"),
        (Target(6), "no class has the index 6, the model's classes are 0 to 5"),
        (Target(0, against=6), "no class has the index 6, the model's classes are 0 to 5"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(TargetError) as error:
        parse_target(text, NAMES)
    assert str(error.value) == message


def test_a_number_too_long_to_be_read_is_refused_too():
    with pytest.raises(TargetError, match=r"^no class is named «999"):
        parse_target("9" * 5000, NAMES)


def test_a_name_that_differs_from_another_only_in_its_capitals():
    names = ("Cardigan", "tabby", "cardigan")
    assert read("Cardigan", names)[0] == 0
    assert read("cardigan", names)[0] == 2
    assert read("tabby-cardigan", names) == (1, 2, "logit")
    with pytest.raises(TargetError, match=r"2 classes are named «CARDIGAN».* 0, 2"):
        parse_target("CARDIGAN", names)


def test_a_contrast_that_can_be_read_in_two_ways_is_refused():
    names = ("black", "black-tan", "tan-hound", "hound")
    with pytest.raises(TargetError, match="«black» − «tan-hound» or as «black-tan» − «hound»"):
        parse_target("black-tan-hound", names)
    assert read("0-2", names) == (0, 2, "logit")


def test_a_whole_name_comes_before_a_contrast():
    assert read("t-shirt", ("t", "shirt", "t-shirt")) == (2, None, "logit")


def test_without_names_any_index_is_taken():
    assert read("4000", ()) == (4000, None, "logit")
    assert parse_target("7", ()).label == "class 7 (7)"
    with pytest.raises(TargetError, match="no class has the index -1"):
        parse_target(-1)
    with pytest.raises(TargetError, match="no class is named «tabby»"):
        parse_target("tabby")


def test_every_class_of_imagenet_is_found_by_its_name():
    from interp.models.catalog import get_spec

    names = get_spec("resnet18").default.categories
    assert [parse_target(name, names).index for name in names] == list(range(1000))
    hyphened = [i for i, name in enumerate(names) if "-" in name]
    assert len(hyphened) > 10
    for i in hyphened:
        for j in range(0, 1000, 37):
            assert read(f"{names[i]}-{names[j]}", names) == (i, j, "logit")
            assert read(f"{names[j]}-{names[i]}", names) == (j, i, "logit")


@pytest.mark.parametrize("text", ["", "3", "0-1", "0-1:prob", "3:logprob", ":prob"])
def test_a_target_is_written_as_it_is_read(text):
    target = parse_target(text, NAMES)
    assert str(target) == text
    assert parse_target(str(target), NAMES) == target
    assert parse_target(target, NAMES) == target


def test_for_people_and_for_file_names():
    assert parse_target("tabby", NAMES).label == "tabby (0)"
    assert parse_target("tabby", NAMES).slug == "tabby-0"
    contrast = parse_target("tabby-jack-o'-lantern:prob", NAMES)
    assert contrast.label == "tabby (0) − jack-o'-lantern (2), probability"
    assert contrast.slug == "tabby-0-minus-jack-o-lantern-2-prob"
    assert parse_target(":prob", NAMES).label == "the top prediction"
    assert parse_target(None, NAMES).slug == "top"


def test_the_top_prediction_is_that_of_the_first_row():
    logits = torch.tensor([[1.0, 5.0, 2.0], [9.0, 0.0, 0.0]])
    assert Target().resolve(logits).index == 1
    assert Target(2).resolve(logits).index == 2
    assert Target(None, against=0).resolve(logits).index == 1


@pytest.mark.parametrize("target", [Target(3), Target(0, 3), Target(-1)])
def test_more_classes_than_the_model_has(target):
    with pytest.raises(TargetError, match="classes are 0 to 2"):
        target.resolve(torch.zeros(1, 3))


def test_scores_by_hand():
    z = [1.0, 2.0, 4.0]
    logits = torch.tensor([z, [0.0, 0.0, 0.0]])
    total = sum(map(exp, z))

    def score(text):
        return parse_target(text, ("a", "b", "c")).resolve(logits).score(logits).tolist()

    assert score("1") == [2.0, 0.0]
    assert score("2-0") == [3.0, 0.0]
    assert score("1:prob") == pytest.approx([exp(2) / total, 1 / 3])
    assert score("1:logprob") == pytest.approx([2 - log(total), -log(3)])
    assert score("2-1:prob") == pytest.approx([(exp(4) - exp(2)) / total, 0.0])
    assert score("2-1:logprob") == pytest.approx([2.0, 0.0])


def test_a_single_logit_has_both_signs():
    logits, binary = find_logits(torch.tensor([[1.5]]))
    assert binary
    assert logits.tolist() == [[-1.5, 1.5]]
    p = 1 / (1 + exp(-1.5))
    assert probabilities(logits, binary)[0].tolist() == pytest.approx([1 - p, p])
    names = class_names(["cat"])
    for text, value in [
        ("cat", 1.5),
        ("not cat", -1.5),
        ("cat-not cat", 3.0),
        ("cat:prob", p),
        ("0:prob", 1 - p),
        ("0:logprob", log(1 - p)),
        ("", 1.5),
    ]:
        target = parse_target(text, ["cat"]).resolve(logits, binary)
        assert target.score(logits).item() == pytest.approx(value), text
        assert target.categories == names == ("not cat", "cat")
    with pytest.raises(TargetError, match="classes are 0 to 1"):
        parse_target("2", ["cat"])


def test_names_of_two_classes_and_of_none_stay():
    assert class_names(["dog", "cat"]) == ("dog", "cat")
    assert class_names([]) == ()


def test_a_probability_near_one_in_half_precision_still_has_a_gradient():
    logits = torch.tensor([[9.0, 0.0]], dtype=torch.bfloat16, requires_grad=True)
    Target(0, scale="prob").score(logits).sum().backward()
    p = 1 / (1 + exp(-9.0))
    assert logits.grad[0, 0].item() == pytest.approx(p * (1 - p), rel=0.01)


LOGITS = torch.arange(6.0).reshape(2, 3)
Named = namedtuple("Named", "logits aux")
Unnamed = namedtuple("Unnamed", "first second")


@dataclass
class Answer:
    logits: torch.Tensor


@pytest.mark.parametrize(
    "output",
    [
        LOGITS,
        (LOGITS, torch.zeros(2, 9)),
        [LOGITS],
        {"aux": torch.zeros(2, 9), "logits": LOGITS},
        OrderedDict(out=LOGITS, aux=torch.zeros(2, 9)),
        Named(LOGITS, torch.zeros(2, 9)),
        Named(aux=None, logits=LOGITS),
        Answer(LOGITS),
    ],
)
def test_logits_are_found(output):
    logits, binary = find_logits(output)
    assert logits is LOGITS
    assert not binary


def test_a_row_of_single_logits():
    logits, binary = find_logits(torch.tensor([2.0, -1.0]))
    assert binary
    assert logits.tolist() == [[-2.0, 2.0], [1.0, -1.0]]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"boxes": torch.zeros(4, 4), "labels": torch.zeros(4)}, r"'boxes': \(4, 4\)"),
        (Unnamed(LOGITS, None), r"'first': \(2, 3\)"),
        (torch.zeros(1, 21, 8, 8), r"\(1, 21, 8, 8\)"),
        (torch.zeros(()), "returns Tensor"),
        ((), "returns tuple"),
        (None, "returns NoneType"),
        ({"logits": "high"}, "returns str"),
    ],
)
def test_what_holds_no_logits_is_refused(output, said):
    with pytest.raises(ModelError, match=said) as error:
        find_logits(output)
    assert "\n" not in str(error.value)


def test_probabilities_are_float32():
    odds = probabilities(torch.zeros(1, 4, dtype=torch.bfloat16), binary=False)
    assert odds.dtype == torch.float32
    assert odds.tolist() == [[0.25] * 4]


FOLDERS = ("1", "10", "2", "2015")  # as an ImageFolder sorts them: the names are no indices


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("=1", (0, None, "logit")),
        ("=10", (1, None, "logit")),
        ("#1", (1, None, "logit")),
        ("# 1", None),
        ("##1", (1, None, "logit")),
        ("2015", (3, None, "logit")),
        ("10", (1, None, "logit")),
        ("3", (3, None, "logit")),
        ("2", (2, None, "logit")),
        ("=10-=2", (1, 2, "logit")),
        ("=10 − =2", (1, 2, "logit")),
        ("#1-#0", (1, 0, "logit")),
        ("=10-#0", (1, 0, "logit")),
        ("#0-=10:prob", (0, 1, "prob")),
        ("=10:prob", (1, None, "prob")),
        ("#1 : logprob", (1, None, "logprob")),
        ("#1-#0:logprob", (1, 0, "logprob")),
        ("#", (None, None, "logit")),
        ("#:prob", (None, None, "prob")),
        ("#-#2", (None, 2, "logit")),
        ("10-2", (1, 2, "logit")),
        (1, (1, None, "logit")),
    ],
)
def test_categories_that_look_like_indices(text, meaning):
    if meaning is None:
        with pytest.raises(TargetError):
            read(text, FOLDERS)
    else:
        assert read(text, FOLDERS) == meaning


@pytest.mark.parametrize(
    ("names", "text", "message"),
    [
        (
            FOLDERS,
            "1",
            "«1» can be read as the class named «1» or as the class of index 1: write =1 or #1",
        ),
        (
            FOLDERS,
            "1:prob",
            "«1:prob» can be read as the class named «1» or as the class of index 1: "
            "write =1:prob or #1:prob",
        ),
        (
            FOLDERS,
            "1-2",
            "«1-2» can be read as «1» − «2» or as index 1 − «2»: write =1-=2 or #1-=2",
        ),
        (
            ("cat", "cat:prob"),
            "cat:prob",
            "«cat:prob» can be read as the class named «cat:prob» or as the class named «cat», "
            "probability: write =cat:prob:logit or 0:prob",
        ),
        (
            ("zero", "#0"),
            "#0",
            "«#0» can be read as the class named «#0» or as the class of index 0: write =#0 or 0",
        ),
        (
            ("10", "=10"),
            "=10",
            "«=10» can be read as the class named «=10» or as the class named «10»: "
            "write ==10 or 0",
        ),
        (("cat", " cat"), " cat", "2 classes are named «cat»: write the index, one of 0, 1"),
        (
            ("2", "2", "1"),
            "2",
            "«2» can be read as the class named «2» or as the class of index 2: write 0, #1 or #2",
        ),
        (("1", "x", "x"), "x", "2 classes are named «x»: write the index, one of #1, 2"),
        (("a-b", "a", "b", "2-1"), "2-1", "«2-1» can be read as the class named «2-1» or as index"),
    ],
)
def test_a_text_of_two_readings_is_refused_with_both(names, text, message):
    with pytest.raises(TargetError) as error:
        parse_target(text, names)
    assert str(error.value).startswith(message)


def test_names_with_signs_spaces_or_nothing_in_them():
    names = ("a-b", "a=b", "a#1", " dog ", "x y", "cat:prob", "x:logit", "-1")
    for index, name in enumerate(names):
        assert read(f"={name}", names)[0] == index, name
        assert read(f"={name}:prob", names) == (index, None, "prob"), name
    assert read("a-b", names)[0] == 0
    assert read("a-b-a#1", names) == (0, 2, "logit")
    assert read("dog", names)[0] == 3
    assert read("dog:prob", names) == (3, None, "prob")
    assert read("cat:prob", names) == (5, None, "logit")
    assert read("cat:prob:prob", names) == (5, None, "prob")
    assert read("", names)[0] is None
    assert read("-1", names)[0] == 7
    assert read("=", ("a", "")) == read("=:logit", ("a", "")) == (1, None, "logit")


def test_an_index_that_no_class_has_is_no_second_reading():
    with pytest.raises(TargetError, match="no class has the index 4"):
        parse_target("#4", FOLDERS)
    with pytest.raises(TargetError, match=r"no class is named «12»: did you mean"):
        parse_target("=12", FOLDERS)
    with pytest.raises(TargetError, match="no class is named «12»"):
        parse_target("=10-=12", FOLDERS)


def test_a_target_is_marked_only_where_it_has_to_be():
    assert str(parse_target("=10", FOLDERS)) == "#1"
    assert str(parse_target("=1", FOLDERS)) == "0"
    assert str(parse_target("=2015", FOLDERS)) == "3"
    assert str(parse_target("#1-#0:prob", FOLDERS)) == "#1-#0:prob"
    assert str(Target(0, categories=("a", "0", "#0"))) == "##0"
    assert str(Target(None, against=1, categories=NAMES)) == "#-#1"
    assert str(Target(None, scale="prob", categories=(":prob", "b"))) == "#:prob"
    assert str(Target(9, categories=("a", "b"))) == "9"


nasty_names = some.lists(
    some.one_of(
        some.text("012#=-: a", max_size=5),
        some.sampled_from(["10", "0-1", "cat:prob", "#0", "##1", "=1", ":prob", "#", "−1", "CAT"]),
    ),
    min_size=2,
    max_size=6,
)


@settings(deadline=None, max_examples=400)
@given(names=nasty_names, data=some.data())
def test_every_target_is_read_as_it_is_written_whatever_the_names(names, data):
    index = some.one_of(some.none(), some.integers(0, len(names) - 1))
    scale = data.draw(some.sampled_from(["logit", "prob", "logprob"]))
    target = Target(data.draw(index), data.draw(index), scale, tuple(names))
    assert parse_target(str(target), names) == target


@settings(deadline=None, max_examples=400)
@given(names=nasty_names, data=some.data())
def test_a_text_that_is_a_name_never_gives_another_class(names, data):
    name = data.draw(some.sampled_from(names))
    for text in (name, f"={name}"):
        try:
            target = parse_target(text, names)
        except TargetError:
            continue
        if text.strip():
            assert target.categories[target.index].strip() == name.strip() or target.index is None
