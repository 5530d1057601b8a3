import { useCallback, useEffect, useRef, useState } from 'react'

const FAST_MS = 15_000

/** True for a while after the member starts something, so that the result shows soon. */
export function usePollFast(): [pollFast: boolean, startPollingFast: () => void] {
  const [pollFast, setPollFast] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const startPollingFast = useCallback(() => {
    clearTimeout(timer.current)
    setPollFast(true)
    timer.current = setTimeout(() => setPollFast(false), FAST_MS)
  }, [])
  useEffect(() => () => clearTimeout(timer.current), [])
  return [pollFast, startPollingFast]
}
