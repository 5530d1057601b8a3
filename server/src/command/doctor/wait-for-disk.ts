import { stat } from 'node:fs/promises'

/** Call it before a synchronous read, which would block the process if the disk hangs. */
export async function waitForDisk(path: string): Promise<void> {
  await stat(path).catch(() => null)
}
