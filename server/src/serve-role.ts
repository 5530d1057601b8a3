/** What a node runs: everything, only requests, or only background work. */
export const SERVE_ROLES = ['all', 'api', 'worker'] as const
export type ServeRole = (typeof SERVE_ROLES)[number]
