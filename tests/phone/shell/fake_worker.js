// Plays the app's worker: what the page says goes to the test's director in the page, what it says comes back here.

const director = new BroadcastChannel("director");

director.addEventListener("message", ({ data }) => {
  if (data.to === "page") postMessage(data.message);
  if (data.to === "worker" && data.fail) throw new Error("the worker was made to fail");
});
addEventListener("message", ({ data }) => director.postMessage({ to: "director", message: data }));
