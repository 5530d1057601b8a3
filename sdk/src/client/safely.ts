/** Calls a callback and ignores its errors, because they must not fail the operation it reports on. */
export function safely(call: () => void): void {
  try {
    call()
  } catch {
    // Reporting the error would call the same callback again.
  }
}
