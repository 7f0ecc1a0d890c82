"""Uploading a dataset."""

from typing import Any

from django import forms

TASKS = [
    ("", "Decide from the file"),
    ("classes", "Classes: one of several for each row"),
    ("numbers", "Numbers: one or more amounts for each row"),
    ("tokens", "Tokens: the next token at each place"),
]


class DatasetForm(forms.Form):
    """What `marketplace.datasets.services.dataset_upload` takes."""

    name = forms.CharField(
        max_length=100,
        required=False,
        help_text="Left empty: the file's name.",
        widget=forms.TextInput(attrs={"placeholder": "Handwritten digits", "autocomplete": "off"}),
    )
    file = forms.FileField(
        help_text="Arrays called inputs and targets (or x and y) in .npz or .safetensors, or a .csv with a header.",
        widget=forms.ClearableFileInput(attrs={"accept": ".npz,.safetensors,.csv"}),
    )
    target_column = forms.CharField(
        max_length=200,
        required=False,
        label="Column to predict",
        help_text="For a .csv only. Left empty: the last column.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    task = forms.ChoiceField(choices=TASKS, required=False, label="What the targets are")

    def upload(self) -> dict[str, Any]:
        """Keyword arguments for the service."""
        file = self.cleaned_data["file"]
        return {
            "name": self.cleaned_data["name"].strip() or file.name.rpartition(".")[0][:100] or "dataset",
            "file": file,
            "file_name": file.name,
            "target_column": self.cleaned_data["target_column"].strip() or None,
            "task": self.cleaned_data["task"] or None,
        }
