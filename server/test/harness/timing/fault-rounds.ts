const FAULT_SECONDS = Number(process.env.FAULT_SECONDS ?? 0)

/** How often a test repeats what it tries at random: in `npm test`, and in `npm run fault`. */
export function rounds(short: number, long: number): number {
  return FAULT_SECONDS > 0 ? long : short
}

/**
 * Repeats a fault for FAULT_SECONDS, and at least once. By default, one round shows that the
 * guarantee holds; a minute, as in `npm run fault`, looks for rare timings.
 */
export async function repeatFault(round: (nth: number) => Promise<void>): Promise<void> {
  const endsAtMs = performance.now() + FAULT_SECONDS * 1_000
  for (let nth = 0; nth === 0 || performance.now() < endsAtMs; nth += 1) await round(nth)
}
