"""The REST API of datasets, what devices did, the catalogue, jobs and the wallet."""

from django.urls import path

from marketplace.api import datasets, devices, estimates, invoices, jobs

urlpatterns = [
    path("datasets/", datasets.DatasetsView.as_view(), name="api-datasets"),
    path("datasets/<uuid:dataset_id>/", datasets.DatasetView.as_view(), name="api-dataset"),
    path(
        "devices/<uuid:device_id>/activity/", devices.DeviceActivityView.as_view(), name="api-device-activity"
    ),
    path("models/", jobs.ModelsView.as_view(), name="api-models"),
    path("jobs/", jobs.JobsView.as_view(), name="api-jobs"),
    path("jobs/<uuid:job_id>/", jobs.JobView.as_view(), name="api-job"),
    path("jobs/<uuid:job_id>/confirm/", jobs.JobConfirmView.as_view(), name="api-job-confirm"),
    path("jobs/<uuid:job_id>/cancel/", jobs.JobCancelView.as_view(), name="api-job-cancel"),
    path("jobs/<uuid:job_id>/rounds/", jobs.JobRoundsView.as_view(), name="api-job-rounds"),
    path("jobs/<uuid:job_id>/model/", jobs.JobModelView.as_view(), name="api-job-model"),
    path("estimates/device/", estimates.DeviceEstimateView.as_view(), name="api-estimate-device"),
    path("invoices/", invoices.InvoicesView.as_view(), name="api-invoices"),
    path("invoices/<uuid:invoice_id>/", invoices.InvoiceView.as_view(), name="api-invoice"),
    path("invoices/<uuid:invoice_id>/pdf/", invoices.InvoicePdfView.as_view(), name="api-invoice-pdf"),
    path("wallet/", jobs.WalletView.as_view(), name="api-wallet"),
]
