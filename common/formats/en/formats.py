"""How moments are written where a template names no format, as in the admin site: short, and in order."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i"
