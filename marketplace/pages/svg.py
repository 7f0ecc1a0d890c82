"""The few shapes that the site's charts are made of, written by an XML writer, which escapes whatever comes in."""

from xml.etree import ElementTree

from django.utils.safestring import SafeString, mark_safe

Svg = ElementTree.Element
Point = tuple[float, float]
Size = tuple[float, float]


def svg_root(title: str, description: str, *, size: Size) -> Svg:
    svg = ElementTree.Element(
        "svg",
        {
            "viewBox": f"0 0 {size[0]} {size[1]}",
            "role": "img",
            "aria-label": f"{title}. {description}" if description else title,
        },
    )
    ElementTree.SubElement(svg, "title").text = title
    if description:
        ElementTree.SubElement(svg, "desc").text = description
    return svg


def svg_line(svg: Svg, css: str, start: Point, end: Point) -> None:
    ends = {"x1": str(start[0]), "y1": str(start[1]), "x2": str(end[0]), "y2": str(end[1])}
    ElementTree.SubElement(svg, "line", {"class": css, **ends})


def svg_text(svg: Svg, anchor: str, place: Point, text: str) -> None:
    where = {"text-anchor": anchor, "x": str(place[0]), "y": str(place[1])}
    ElementTree.SubElement(svg, "text", where).text = text


def svg_rect(svg: Svg, css: str, place: Point, size: Size, title: str = "") -> None:
    """`title` is what a pointer that rests on it is told."""
    (x, y), (width, height) = place, size
    where = {"x": f"{x:.2f}", "y": f"{y:.2f}", "width": f"{width:.2f}", "height": f"{height:.2f}"}
    rect = ElementTree.SubElement(svg, "rect", {"class": css, **where})
    if title:
        ElementTree.SubElement(rect, "title").text = title


def svg_words(svg: Svg) -> str:
    return ElementTree.tostring(svg, encoding="unicode")


def svg_markup(svg: Svg) -> SafeString:
    """For templates."""
    return mark_safe(svg_words(svg))  # noqa: S308 - made by an XML writer, which escapes
