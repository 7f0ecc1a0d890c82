"""The site's pages for buyers and owners."""

from django.urls import path

from marketplace.pages.views import datasets, devices, earnings, home, invoices, jobs, wallet

urlpatterns = [
    path("", home.home, name="home"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/new/", jobs.job_new, name="job-new"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/progress/", jobs.job_progress, name="job-progress"),
    path("jobs/<uuid:job_id>/confirm/", jobs.job_confirm_post, name="job-confirm"),
    path("jobs/<uuid:job_id>/cancel/", jobs.job_cancel_post, name="job-cancel"),
    path("jobs/<uuid:job_id>/model/<slug:model_format>/", jobs.job_model, name="job-model"),
    path("datasets/", datasets.datasets, name="datasets"),
    path("datasets/<uuid:dataset_id>/", datasets.dataset, name="dataset"),
    path("datasets/<uuid:dataset_id>/delete/", datasets.dataset_delete_post, name="dataset-delete"),
    path("devices/", devices.devices, name="devices"),
    path("devices/list/", devices.device_list, name="device-list"),
    path("devices/pair/", devices.pair, name="device-pair"),
    path("devices/pause/", devices.pause_all, name="devices-pause"),
    path("devices/resume/", devices.resume_all, name="devices-resume"),
    path("devices/windows/", devices.common_windows, name="common-windows"),
    path("devices/<uuid:device_id>/", devices.device, name="device"),
    path("devices/<uuid:device_id>/rename/", devices.rename, name="device-rename"),
    path("devices/<uuid:device_id>/policy/", devices.policy, name="device-policy"),
    path("devices/<uuid:device_id>/windows/", devices.own_windows, name="device-windows"),
    path("devices/<uuid:device_id>/pause/", devices.pause, name="device-pause"),
    path("devices/<uuid:device_id>/resume/", devices.resume, name="device-resume"),
    path("devices/<uuid:device_id>/remove/", devices.remove, name="device-remove"),
    path("earnings/", earnings.earnings, name="earnings"),
    path("wallet/", wallet.wallet, name="wallet"),
    path("invoices/", invoices.invoices, name="invoices"),
    path("invoices/<uuid:invoice_id>/", invoices.invoice, name="invoice"),
    path("invoices/<uuid:invoice_id>/pdf/", invoices.invoice_pdf, name="invoice-pdf"),
]
