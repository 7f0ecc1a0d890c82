"""The owner's pages: all devices at a glance, pairing a new one, and one device's windows and policy."""

from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.domain.windows import NIGHTLY
from accounts.models import User
from accounts.selectors import common_windows_of, windows_of_device
from accounts.services import (
    device_pause,
    device_remove,
    device_rename,
    device_resume,
    device_set_policy,
    devices_pause_all,
    devices_resume_all,
    idle_windows_replace,
    pairing_code_create,
)
from common.clock import utc_now
from common.errors import NightshiftError
from common.http import status_of
from marketplace.nights.reasons import counted
from marketplace.nights.selectors import device_night, owner_nights
from marketplace.pages.fleet import device_view, fleet_view
from marketplace.pages.forms import (
    DeviceNameForm,
    PolicyForm,
    WindowFormSet,
    refuse,
    refuse_windows,
    window_formset,
    windows_of,
)
from marketplace.pages.hour_charts import uses_drawn
from marketplace.pages.nights import night_view, rules_in_force, strip_views
from marketplace.pages.pairing import PairingPanel, pairing_panel
from marketplace.pages.views.requests import page
from marketplace.pages.week_chart import week_chart
from marketplace.pages.window_rows import minute_of_day, window_lines, window_presets

PREFIX = "windows"


@page("GET", "HEAD")
def devices(request: HttpRequest, person: User) -> HttpResponse:
    return _devices_page(request, person)


@page("GET", "HEAD")
def device_list(request: HttpRequest, person: User) -> HttpResponse:
    """The part of the page that changes by itself."""
    context = {"fleet": fleet_view(owner=person, now=utc_now())}
    return render(request, "marketplace/device_list.html", context)


@page("POST")
def pair(request: HttpRequest, person: User) -> HttpResponse:
    """Shows a new code; it is on this one page only, for just its digest is stored."""
    try:
        pairing_code, code = pairing_code_create(owner=person)
    except NightshiftError as error:
        messages.error(request, error.message)
        return _devices_page(request, person, status=status_of(error))
    return _devices_page(request, person, pairing=pairing_panel(code, pairing_code.expires_at))


@page("POST")
def pause_all(request: HttpRequest, person: User) -> HttpResponse:
    paused = devices_pause_all(owner=person)
    messages.success(request, f"{counted(paused, 'device')} paused: no work until you resume.")
    return redirect("devices")


@page("POST")
def resume_all(request: HttpRequest, person: User) -> HttpResponse:
    resumed = devices_resume_all(owner=person)
    messages.success(request, f"{counted(resumed, 'device')} resumed, to work as windows and rules allow.")
    return redirect("devices")


@page("POST")
def common_windows(request: HttpRequest, person: User) -> HttpResponse:
    form = WindowFormSet(request.POST, prefix=PREFIX)
    status = _windows_status(form, person, None)
    if status is not None:
        return _devices_page(request, person, windows_form=form, status=status)
    messages.success(request, "The idle windows are saved.")
    return redirect("devices")


@page("GET", "HEAD")
def device(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    return _device_page(request, person, device_id)


@page("POST")
def rename(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    form = DeviceNameForm(request.POST)
    status = 400
    if form.is_valid():
        try:
            device_rename(owner=person, device_id=device_id, name=form.cleaned_data["name"])
            return redirect("device", device_id=device_id)
        except NightshiftError as error:
            status = refuse(form, error)
    return _device_page(request, person, device_id, name_form=form, status=status)


@page("POST")
def policy(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    form = PolicyForm(request.POST)
    status = 400
    if form.is_valid():
        try:
            device_set_policy(owner=person, device_id=device_id, **form.cleaned_data)
            messages.success(request, "The rules are saved.")
            return redirect("device", device_id=device_id)
        except NightshiftError as error:
            status = refuse(form, error)
    return _device_page(request, person, device_id, policy_form=form, status=status)


@page("POST")
def own_windows(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    form = WindowFormSet(request.POST, prefix=PREFIX)
    status = _windows_status(form, person, device_id)
    if status is not None:
        return _device_page(request, person, device_id, windows_form=form, status=status)
    messages.success(request, "The idle windows of this device are saved.")
    return redirect("device", device_id=device_id)


@page("POST")
def pause(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    device_pause(owner=person, device_id=device_id)
    return redirect("device", device_id=device_id)


@page("POST")
def resume(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    device_resume(owner=person, device_id=device_id)
    return redirect("device", device_id=device_id)


@page("POST")
def remove(request: HttpRequest, person: User, device_id: UUID) -> HttpResponse:
    device_remove(owner=person, device_id=device_id)
    messages.success(request, "The device is removed.")
    return redirect("devices")


def _windows_status(form: WindowFormSet, person: User, device_id: UUID | None) -> int | None:
    """Store the windows; the status of the page that shows what is wrong with them, None if nothing is."""
    if not form.is_valid():
        return 400
    try:
        idle_windows_replace(owner=person, device_id=device_id, windows=windows_of(form))
    except NightshiftError as error:
        return refuse_windows(form, error)
    return None


def _devices_page(
    request: HttpRequest,
    person: User,
    *,
    windows_form: WindowFormSet | None = None,
    pairing: PairingPanel | None = None,
    status: int = 200,
) -> HttpResponse:
    now, zone = utc_now(), ZoneInfo(person.time_zone)
    nights = owner_nights(owner=person, now=now)
    common_windows = common_windows_of(person)
    context = {
        "fleet": fleet_view(owner=person, now=now),
        "strips": strip_views(nights, zone=zone),
        "strip_keys": uses_drawn(night.record for night in nights),
        "has_windows": bool(common_windows),
        "usual_windows": window_lines(NIGHTLY),
        "windows_form": windows_form or window_formset(common_windows),
        "presets": window_presets(None),
        "week_now": _week_now(now.astimezone(zone)),
        "pairing": pairing,
    }
    return render(request, "marketplace/devices.html", context, status=status)


def _device_page(
    request: HttpRequest,
    person: User,
    device_id: UUID,
    *,
    name_form: DeviceNameForm | None = None,
    policy_form: PolicyForm | None = None,
    windows_form: WindowFormSet | None = None,
    status: int = 200,
) -> HttpResponse:
    now, zone = utc_now(), ZoneInfo(person.time_zone)
    view = device_view(owner=person, device_id=device_id, now=now)
    night = device_night(owner=person, device_id=device_id, now=now)
    own_windows = windows_of_device(view.device)
    context = {
        "view": view,
        "night": night_view(night, zone=zone),
        "week": week_chart(view.profile.windows, now=now.astimezone(zone)),
        "rules": rules_in_force(view.profile, now=now),
        "now": now,
        "has_own_windows": bool(own_windows),
        "presets": window_presets(common_windows_of(person)),
        "week_now": _week_now(now.astimezone(zone)),
        "name_form": name_form or DeviceNameForm(initial={"name": view.device.name}),
        "policy_form": policy_form or PolicyForm.of(view.device),
        "windows_form": windows_form or window_formset(own_windows),
    }
    return render(request, "marketplace/device.html", context, status=status)


def _week_now(wall: datetime) -> str:
    """For the week grid: weekday and minute on the owner's clock, which the browser's need not be."""
    return f"{wall.weekday()} {minute_of_day(wall.time())}"
