"""Quote the cells of CSV and TSV (RFC 4180)."""


def quoted(cell: str, separator: str = ",") -> str:
    """Return a cell, in quotes where it needs them."""
    # Python's csv.writer leaves a lone carriage return bare, which its own reader then refuses.
    if any(special in cell for special in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell
