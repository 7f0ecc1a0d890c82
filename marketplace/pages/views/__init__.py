"""Views parse, call one service or selector, render. What a person may see is decided by the selector."""
