import { useLocalStorage } from '@mantine/hooks'

/** Within the limits of the service, which are 10 and 200. */
export const PAGE_SIZES = [10, 25, 50, 100, 200] as const
/** About twice what a typical screen shows. A taller screen loads the next page itself. */
const PAGE_SIZE_DEFAULT = 50

/** How many events the list loads at a time. The browser remembers the member's choice. */
export function usePageSize() {
  const [stored, setPageSize] = useLocalStorage<number>({
    key: 'annals.pageSize',
    defaultValue: PAGE_SIZE_DEFAULT,
    // Reads the stored choice before the first render, which would otherwise load the first page twice.
    getInitialValueInEffect: false,
  })
  const pageSize = PAGE_SIZES.find((size) => size === stored) ?? PAGE_SIZE_DEFAULT
  return { pageSize, setPageSize }
}
