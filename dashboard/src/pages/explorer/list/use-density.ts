import { useLocalStorage } from '@mantine/hooks'

export const DENSITIES = ['comfortable', 'compact'] as const
type Density = (typeof DENSITIES)[number]

const ROW_PX: Record<Density, number> = { comfortable: 34, compact: 26 }
/** Two lines, on a phone. */
const SMALL_ROW_PX: Record<Density, number> = { comfortable: 54, compact: 44 }

/** How high the rows of the list are. The browser remembers the member's choice. */
export function useDensity() {
  const [stored, setDensity] = useLocalStorage<Density>({
    key: 'annals.density',
    defaultValue: 'comfortable',
    getInitialValueInEffect: false,
  })
  const density = DENSITIES.find((name) => name === stored) ?? 'comfortable'
  return { density, setDensity }
}

export function useRowPx(isSmall: boolean): number {
  const { density } = useDensity()
  return (isSmall ? SMALL_ROW_PX : ROW_PX)[density]
}
