import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { queryClient } from './api/query-client.ts'
import { SESSION_QUERY } from './api/session.ts'
import { whenConnected } from './api/when-connected.ts'
import { readCompanySearch } from './pages/company/usage/usage-search.ts'
import { readEventTypesSearch } from './pages/event-types/event-types-search.ts'
import { readExplorerSearch } from './query/explorer-search.ts'
import { readExportsSearch } from './pages/exports/exports-search.ts'
import { readKeysSearch } from './pages/keys/keys-search.ts'
import { readWebhookSearch } from './pages/webhooks/webhook-search.ts'
import { parseSearchParams, formatSearchParams } from './search-params.ts'
import { Shell } from './shell/Shell.tsx'
import { NotFound, NotFoundPage, PageError } from './shell/ErrorPages.tsx'

const root = createRootRoute({ notFoundComponent: NotFoundPage, errorComponent: PageError })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/app/explorer' })
  },
})

const link = createRoute({
  getParentRoute: () => root,
  path: '/app/link',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/sign-in/LinkPage.tsx')),
    'LinkPage',
  ),
})

/** All pages that require a session. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  // Starts while the code of the page is still loading.
  loader: () => void queryClient.prefetchQuery(SESSION_QUERY),
  staleTime: Number.POSITIVE_INFINITY,
  component: Shell,
})

const explorer = createRoute({
  getParentRoute: () => shell,
  path: '/app/explorer',
  validateSearch: readExplorerSearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/explorer/ExplorerPage.tsx')),
    'ExplorerPage',
  ),
})

const eventTypes = createRoute({
  getParentRoute: () => shell,
  path: '/app/event-types',
  validateSearch: readEventTypesSearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/event-types/EventTypesPage.tsx')),
    'EventTypesPage',
  ),
})

const welcome = createRoute({
  getParentRoute: () => shell,
  path: '/app/welcome',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/welcome/WelcomePage.tsx')),
    'WelcomePage',
  ),
})

const exportList = createRoute({
  getParentRoute: () => shell,
  path: '/app/exports',
  validateSearch: readExportsSearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/exports/ExportsPage.tsx')),
    'ExportsPage',
  ),
})

const webhookList = createRoute({
  getParentRoute: () => shell,
  path: '/app/webhooks',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/webhooks/WebhooksPage.tsx')),
    'WebhooksPage',
  ),
})

const webhookDetail = createRoute({
  getParentRoute: () => shell,
  path: '/app/webhooks/$webhookId',
  validateSearch: readWebhookSearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/webhooks/WebhookPage.tsx')),
    'WebhookPage',
  ),
})

const keys = createRoute({
  getParentRoute: () => shell,
  path: '/app/keys',
  validateSearch: readKeysSearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/keys/KeysPage.tsx')),
    'KeysPage',
  ),
})

const integrity = createRoute({
  getParentRoute: () => shell,
  path: '/app/integrity',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/integrity/IntegrityPage.tsx')),
    'IntegrityPage',
  ),
})

const certificate = createRoute({
  getParentRoute: () => shell,
  path: '/app/integrity/certificate/$runId',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/integrity/certificate/CertificatePage.tsx')),
    'CertificatePage',
  ),
})

const company = createRoute({
  getParentRoute: () => shell,
  path: '/app/company/$section',
  validateSearch: readCompanySearch,
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/company/CompanyPage.tsx')),
    'CompanyPage',
  ),
})

const account = createRoute({
  getParentRoute: () => shell,
  path: '/app/account',
  component: lazyRouteComponent(
    whenConnected(() => import('./pages/company/account/AccountPage.tsx')),
    'AccountPage',
  ),
})

/** Inside the frame, so that the navigation is available. `/app` itself redirects to the explorer. */
const unknown = createRoute({
  getParentRoute: () => shell,
  path: '/app/$',
  beforeLoad: ({ params: { _splat: rest } }) => {
    if (!rest) throw redirect({ to: '/app/explorer' })
  },
  component: NotFound,
})

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    link,
    shell.addChildren([
      explorer,
      eventTypes,
      welcome,
      exportList,
      webhookList,
      webhookDetail,
      keys,
      integrity,
      certificate,
      company,
      account,
      unknown,
    ]),
  ]),
  defaultPreload: 'intent',
  parseSearch: parseSearchParams,
  stringifySearch: formatSearchParams,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
