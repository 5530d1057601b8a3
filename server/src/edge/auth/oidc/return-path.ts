const HOME = '/app/explorer'
const BASE = 'http://dashboard.invalid'

/**
 * The page of the dashboard that a path names, normalized, or null if it is not one. Browsers read `//host` and
 * `/\host` as another host, so the path is judged as a browser would resolve it.
 */
export function returnPathOf(path: string | undefined): string | null {
  if (path === undefined) return HOME
  if (!path.startsWith('/') || !URL.canParse(path, BASE)) return null
  const { origin, pathname, search } = new URL(path, BASE)
  if (origin !== BASE) return null
  if (pathname === '/') return HOME
  return /^\/app(\/|$)/.test(pathname) ? `${pathname}${search}` : null
}
