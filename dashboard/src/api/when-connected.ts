import { checkConnection, isLost, noteFailure, onReconnect } from './connection.ts'

/**
 * Makes a dynamic import wait for the service instead of failing, which would replace the whole page with an
 * error.
 */
export function whenConnected<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      return await load()
    } catch (error) {
      noteFailure()
      await checkConnection()
      if (!isLost()) throw error
      await new Promise<void>((resolve) => {
        const stop = onReconnect(() => {
          stop()
          resolve()
        })
      })
      return await load()
    }
  }
}
