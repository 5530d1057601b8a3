import { useCallback, useEffect, useRef, useState } from 'react'

const HURRY_MS = 15_000

/** True for a while after something was begun whose outcome is looked for. */
export function useHurry(): [isHurried: boolean, hurry: () => void] {
  const [isHurried, setHurried] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const hurry = useCallback(() => {
    clearTimeout(timer.current)
    setHurried(true)
    timer.current = setTimeout(() => setHurried(false), HURRY_MS)
  }, [])
  useEffect(() => () => clearTimeout(timer.current), [])
  return [isHurried, hurry]
}
