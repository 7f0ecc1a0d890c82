"""The REST API of tokens, devices, idle windows and pairing."""

from django.urls import path

from accounts.api import views

urlpatterns = [
    path("tokens/", views.ApiTokensView.as_view(), name="api-tokens"),
    path("tokens/<int:token_id>/", views.ApiTokenView.as_view(), name="api-token"),
    path("windows/", views.CommonWindowsView.as_view(), name="api-windows"),
    path("pairing-codes/", views.PairingCodesView.as_view(), name="api-pairing-codes"),
    path("devices/", views.DevicesView.as_view(), name="api-devices"),
    path("devices/pause-all/", views.DevicesPauseAllView.as_view(), name="api-devices-pause-all"),
    path("devices/resume-all/", views.DevicesResumeAllView.as_view(), name="api-devices-resume-all"),
    path("devices/pair/", views.PairView.as_view(), name="api-pair"),
    path("devices/<uuid:device_id>/", views.DeviceView.as_view(), name="api-device"),
    path("devices/<uuid:device_id>/pause/", views.DevicePauseView.as_view(), name="api-device-pause"),
    path("devices/<uuid:device_id>/resume/", views.DeviceResumeView.as_view(), name="api-device-resume"),
    path("devices/<uuid:device_id>/policy/", views.DevicePolicyView.as_view(), name="api-device-policy"),
    path("devices/<uuid:device_id>/windows/", views.DeviceWindowsView.as_view(), name="api-device-windows"),
]
