/** Wall time in milliseconds since the epoch, for times that are stored or shown. Can step back. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/**
 * Milliseconds since the process started, for durations within the process, such as the age of a cache
 * entry or the refill of a bucket. Never steps back, even if the system clock does.
 */
export type MonotonicClock = () => number

export const monotonicClock: MonotonicClock = () => performance.now()
