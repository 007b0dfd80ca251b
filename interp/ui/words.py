"""Numbers as the pages write them."""


def ordinal(place: int) -> str:
    """«1st», «2nd», «13th», «1,280th»."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if place % 100 in (11, 12, 13) else ends.get(place % 10, "th")
    return f"{place:,}{end}"


def number(value: float) -> str:
    """Three digits, with a true minus sign."""
    return f"{float(value) + 0.0:.3g}".replace("-", "−")  # + 0.0: a negative zero is zero


def signed(value: float) -> str:
    """`number` with a plus where it is above zero."""
    return f"+{number(value)}" if value > 0 else number(value)
