/** Wall time in milliseconds since the epoch: for times that are stored or shown. It can step back. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/**
 * Milliseconds since the process started: for durations within the process, such as the age of a
 * cache entry or the refill of a bucket. It never steps back, whatever is done to the system's time.
 */
export type MonotonicClock = () => number

export const monotonicClock: MonotonicClock = () => performance.now()
