/** The last word of actions that destroy, fail or are refused, such as `invoice.deleted` and `login_failed`. */
const DANGEROUS =
  /(^|[^a-z])(deleted|destroyed|erased|purged|removed|failed|failure|denied|refused|rejected|forbidden|blocked|banned|locked|suspended|revoked)$/i

/** Whether an action is shown in the danger tone. The word itself says why, so the color isn't alone. */
export function isDangerous(action: string): boolean {
  return DANGEROUS.test(action)
}
