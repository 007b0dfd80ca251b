"""A lesson's source cut into coloured pieces, line by line."""

import io
import keyword
import tokenize

Piece = tuple[str, str]

_STRINGS = {"STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END"}


def pieces(source: str) -> list[list[Piece]]:
    """Each line of Python source as (kind, text): keyword, string, number, comment, arrow or none.

    The texts of a line put together are the line.
    """
    lines = source.splitlines()
    cut: list[list[Piece]] = [[] for _ in lines]
    done = [0] * len(lines)

    def put(row: int, begin: int, end: int, kind: str) -> None:
        text = lines[row]
        if begin > done[row]:
            cut[row].append(("", text[done[row] : begin]))
        if end > begin:
            cut[row].append((kind, text[begin:end]))
        done[row] = max(done[row], end)

    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = _kind(token)
        if not kind:
            continue
        (first, begin), (last, end) = token.start, token.end
        for row in range(first - 1, last):
            put(
                row,
                begin if row == first - 1 else 0,
                end if row == last - 1 else len(lines[row]),
                kind,
            )
    for row, text in enumerate(lines):
        put(row, len(text), len(text), "")
    return cut


def _kind(token: tokenize.TokenInfo) -> str:
    name = tokenize.tok_name[token.type]
    if name in _STRINGS:
        return "string"
    if name in ("NUMBER", "COMMENT"):
        return name.lower()
    if name == "NAME" and keyword.iskeyword(token.string):
        return "keyword"
    return "arrow" if token.string == "->" else ""  # a browser would break it at its hyphen
