// Picks the browser's time zone in a form that asks for one (a select marked data-browser-time-zone).
const select = document.querySelector("select[data-browser-time-zone]");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (select && [...select.options].some((option) => option.value === zone)) select.value = zone;
