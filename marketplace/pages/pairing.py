"""What an owner is shown to pair a device: a phone scans it, a laptop types it."""

from dataclasses import dataclass
from datetime import datetime

import segno
from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

QUIET_ZONE = 4  # modules around the code, as ISO/IEC 18004 asks for


@dataclass(frozen=True, slots=True)
class PairingPanel:
    code: str
    expires_at: datetime
    server_url: str
    phone_url: str
    phones_can_use_it: bool
    qr_svg: SafeString


def pairing_panel(code: str, expires_at: datetime) -> PairingPanel:
    """The code as people and as cameras read it.

    The code is in the address's fragment, which browsers keep to themselves: no server has it in a log.
    """
    phone_url = f"{settings.PUBLIC_URL}{reverse('device-app')}#code={code}"
    return PairingPanel(
        code=code,
        expires_at=expires_at,
        server_url=settings.PUBLIC_URL,
        phone_url=phone_url,
        # Elsewhere than on the site's own machine, browsers give keys and the GPU to https alone.
        phones_can_use_it=settings.PUBLIC_URL.startswith("https://"),
        qr_svg=_qr_svg(phone_url),
    )


def _qr_svg(text: str) -> SafeString:
    svg = segno.make(text, error="m", micro=False).svg_inline(
        border=QUIET_ZONE, svgclass="qr", lineclass=None, omitsize=True
    )
    return mark_safe(svg)  # noqa: S308 - segno writes numbers into it, and nothing of the text
