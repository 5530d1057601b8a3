/**
 * Loaded into `bin/annals serve` by `NODE_OPTIONS=--import`. Each SIGUSR2 raises the next of these
 * exceptions, as a bug would.
 */
import { Batcher } from '../../../src/intake/batcher.ts'

const FAULTS: (() => void)[] = [
  () => {
    throw new Error('a bug outside the writer', { cause: new Error('its cause') })
  },
  () => {
    void Promise.reject(new Error('a rejection outside the writer'))
  },
  () => {
    const batcher = new Batcher<string, string>(async (items) => items, {
      itemsPerBatchMax: 1,
      waitingMin: 1,
      waitingMax: 1,
      waitMsMax: 1,
      lingerMs: () => {
        throw new Error('a bug in the writer')
      },
    })
    void batcher.submit('item')
  },
]

process.on('SIGUSR2', () => FAULTS.shift()?.())
