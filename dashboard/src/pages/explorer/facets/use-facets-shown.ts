import { useLocalStorage } from '@mantine/hooks'

/** Whether the explorer shows the facets. The browser remembers the member's choice. */
export function useFacetsShown(): readonly [boolean, (isShown: boolean) => void] {
  const [isShown, setShown] = useLocalStorage<boolean>({
    key: 'annals.facets',
    defaultValue: false,
    getInitialValueInEffect: false,
  })
  return [isShown, setShown]
}
