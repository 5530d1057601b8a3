import { lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { AddFilterButton } from './AddFilterButton.tsx'
import type { MenuProps } from './FilterMenu.tsx'

const loadMenu = async () => ({ default: (await import('./FilterMenu.tsx')).FilterMenu })
const FilterMenu = lazy(whenConnected(loadMenu))

/** If it fails, opening the menu tries again. */
const prefetch = () => void loadMenu().catch(() => {})

/** Loads the menu when the member moves to the button, because most visits don't open it. */
export function AddFilter(props: MenuProps) {
  const [wasOpened, setOpened] = useState(false)
  const button = (
    <AddFilterButton
      aria-expanded={false}
      onPointerEnter={prefetch}
      onFocus={prefetch}
      onClick={() => setOpened(true)}
    />
  )
  if (!wasOpened) return button
  return (
    <Suspense fallback={button}>
      <FilterMenu {...props} />
    </Suspense>
  )
}
