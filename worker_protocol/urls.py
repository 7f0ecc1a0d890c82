"""The addresses of the phone app, all under `/device/`, which is its service worker's reach."""

from django.urls import path

from worker_protocol import views

urlpatterns = [
    path("device/", views.app, name="device-app"),
    path("device/manifest.webmanifest", views.manifest, name="device-manifest"),
    path("device/sw.js", views.service_worker, name="device-service-worker"),
    path("device/worker.js", views.worker, name="device-worker"),
    path("device/self-test.json", views.self_test_manifest, name="device-self-test"),
    path("device/self-test/<slug:sha256>", views.self_test_file, name="device-self-test-file"),
    path("device/facts/", views.facts, name="device-facts"),
]
