// Where the clock stands in each minute, so that no pixel shows the same for long: screens burn in. Pure.

// Two periods without a common divisor: the place comes back after 38 x 23 minutes, more than half a day. One is even,
// so that it turns on a minute and no two minutes in a row are the same.
const [ACROSS_MINUTES, DOWN_MINUTES] = [38, 23];

// {x, y}, each from -1 to 1, of the room there is around the middle.
export function driftAt(minute) {
  return { x: zigzag(minute / ACROSS_MINUTES), y: zigzag(minute / DOWN_MINUTES) };
}

// -1 to 1 and back with each turn, at an even pace: every place gets the same time.
function zigzag(turns) {
  const part = turns - Math.floor(turns);
  return part < 0.5 ? part * 4 - 1 : 3 - part * 4;
}
