import { useCallback, useEffect, useRef, useState } from 'react'

const HURRY_MS = 15_000

/** True for a while after something was begun whose outcome is looked for. */
export function usePollFast(): [pollFast: boolean, startPollingFast: () => void] {
  const [pollFast, setPollFast] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const startPollingFast = useCallback(() => {
    clearTimeout(timer.current)
    setPollFast(true)
    timer.current = setTimeout(() => setPollFast(false), HURRY_MS)
  }, [])
  useEffect(() => () => clearTimeout(timer.current), [])
  return [pollFast, startPollingFast]
}
