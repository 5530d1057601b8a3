/** Milliseconds since the epoch. An argument everywhere, so that tests move time by hand. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()
