/** Calls back. A callback that throws must not fail what it is told about. */
export function safely(call: () => void): void {
  try {
    call()
  } catch {
    // Reporting it would call the same callback.
  }
}
