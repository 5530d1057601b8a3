import { Button } from '@mantine/core'
import { useFacetsShown } from './use-facets-shown.ts'

export function FacetsToggle() {
  const [isShown, setShown] = useFacetsShown()
  return (
    <Button
      size="compact-xs"
      variant={isShown ? 'light' : 'subtle'}
      aria-pressed={isShown}
      onClick={() => setShown(!isShown)}
    >
      Facets
    </Button>
  )
}
