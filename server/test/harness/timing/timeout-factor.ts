/**
 * For services and databases in tests: they report an outage after about 15 seconds instead of one, because a
 * busy machine can take a second for anything. Tests that are about outages use 1.
 */
export const TIMEOUT_FACTOR = 20
