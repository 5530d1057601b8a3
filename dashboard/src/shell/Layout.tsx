import { Group } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense } from 'react'
import { useKnownBroken } from '../api/broken-chains.ts'
import { whenConnected } from '../api/when-connected.ts'
import { focusMenuOpener } from '../parts/dialog/focus-opener.ts'
import { Icon } from '../parts/Icon.tsx'
import { useMissingTables } from '../parts/use-missing-tables.ts'
import { ConnectionBanner } from './ConnectionBanner.tsx'
import classes from './Layout.module.css'
import { COMPANY_NAVIGATION, MAIN_NAVIGATION, type NavigationItem } from './navigation.ts'
import { useSession } from '../api/session-context.tsx'
import { NoticeBell } from './NoticeBell.tsx'
import { PaletteButton } from './PaletteButton.tsx'
import { UserMenu } from './UserMenu.tsx'
import { WorkspacePicker } from './WorkspacePicker.tsx'

// Loaded on demand, because usually there are none.
const Warnings = lazy(
  whenConnected(async () => ({ default: (await import('./Warnings.tsx')).Warnings })),
)

/** The layout: navigation on the left, workspace picker at the top, page in the middle. */
export function Layout({ children }: { children: ReactNode }) {
  const { hasPermission } = useSession()
  const { workspaceIds: brokenIds } = useKnownBroken()
  const hasWarnings = useMissingTables() !== '' || brokenIds.size > 0
  const main = MAIN_NAVIGATION.filter(({ permission }) => hasPermission(permission))
  const company = COMPANY_NAVIGATION.filter(({ permission }) => hasPermission(permission))
  return (
    <div className={classes.frame} onClickCapture={focusMenuOpener}>
      <a className={classes.skip} href="#content">
        Skip to content
      </a>
      <nav className={classes.side} aria-label="Main">
        <div className={classes.brand}>
          <img src="/assets-static/mark.svg" width="22" height="22" alt="" />
          Annals
        </div>
        {main.map((item) => (
          <NavigationLink item={item} key={item.to} />
        ))}
        <div className={classes.group}>Company</div>
        {company.map((item) => (
          <NavigationLink item={item} key={item.to} />
        ))}
      </nav>
      <div className={classes.main}>
        <header className={classes.top}>
          <WorkspacePicker />
          <Group gap="xs" wrap="nowrap" miw={0}>
            <PaletteButton />
            <NoticeBell />
            <UserMenu />
          </Group>
        </header>
        <main id="content" className={classes.content} tabIndex={-1}>
          <ConnectionBanner />
          {hasWarnings && (
            <Suspense>
              <Warnings />
            </Suspense>
          )}
          {children}
        </main>
      </div>
      <nav className={classes.bottom} aria-label="Main, small screen">
        {main.map((item) => (
          <NavigationLink item={item} key={item.to} />
        ))}
      </nav>
    </div>
  )
}

function NavigationLink({ item: { to, label, icon } }: { item: NavigationItem }) {
  return (
    <Link to={to} className={classes.item}>
      <Icon name={icon} />
      {label}
    </Link>
  )
}
