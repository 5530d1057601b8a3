import swagger from '@fastify/swagger'
import { fastify, type FastifyInstance } from 'fastify'
import { ExportRow } from './schema/export-file.ts'
import { compressStaticFile, sendStaticFile, type StaticFile } from './static-file.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The dashboard's own document. `swagger` is the API's. */
    dashboardSwagger: FastifyInstance['swagger']
  }
}

/** Call it before registering the routes. Each route goes into one of the two documents. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    transform: ({ schema, url }) => ({ schema: hiddenWhen(schema, isDashboard(url)), url }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals',
        version: '1.0.0',
        description:
          'Audit events: ingestion into a tamper-evident ledger, queries, signed webhooks, and exports.',
      },
      tags: [
        { name: 'Events', description: 'Send and find audit events.' },
        { name: 'Keys', description: 'The key that calls.' },
        { name: 'Webhooks', description: 'Events sent on as they come, signed.' },
        { name: 'Exports', description: 'Events as files, streamed.' },
        { name: 'Health', description: 'For load balancers and operators.' },
      ],
      components: {
        // Not the body of any route, but the format of a line in a download.
        schemas: { ExportRow },
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
      },
      security: [{ apiKey: [] }],
    },
  })
  await app.register(swagger, {
    decorator: 'dashboardSwagger',
    transform: ({ schema, url, route }) => ({
      schema: withPermission(hiddenWhen(schema, !isDashboard(url)), route.config?.permission),
      url,
    }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals dashboard',
        version: '1.0.0',
        description:
          'What the pages of the dashboard are made of. Outside the public contract: it may change with any release.',
      },
      tags: DASHBOARD_TAGS,
      components: {
        schemas: { ExportRow },
        securitySchemes: {
          session: { type: 'apiKey', in: 'cookie', name: '__Host-annals_session' },
        },
      },
      security: [{ session: [] }],
    },
  })
}

const DASHBOARD_TAGS = [
  { name: 'Session', description: 'Signing in and out, passwords, one-time links.' },
  { name: 'Explorer', description: 'Events: pages, suggestions, a histogram, a live tail.' },
  { name: 'Views', description: 'Saved queries.' },
  { name: 'Exports', description: 'Events as files.' },
  { name: 'Templates', description: 'Exports that are made again and again.' },
  { name: 'Webhooks', description: 'Events sent on as they come, and what became of them.' },
  { name: 'Keys', description: 'API keys and what they may do.' },
  { name: 'Integrity', description: 'The chains, and the proof that they hold.' },
  { name: 'Company', description: 'Workspaces, projects, members, plan and usage.' },
]

function isDashboard(url: string): boolean {
  return url.startsWith('/dashboard/')
}

/** Documents the permission that a route requires. Routes that anyone can call have none. */
function withPermission<T extends object | undefined>(schema: T, permission: unknown): T {
  return schema && permission ? { ...schema, 'x-permission': permission } : schema
}

/** A route without a schema isn't in any document anyway. */
function hiddenWhen<T extends object | undefined>(schema: T, isHidden: boolean): T {
  return isHidden && schema ? { ...schema, hide: true } : schema
}

/** For the reference page and its script, which load nothing from other hosts. */
const REFERENCE_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const REFERENCE_CONFIGURATION = {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  // Services of the page's vendor, which the policy above would block anyway.
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} as const

/**
 * GET /openapi.json and the page that renders it, GET /docs. Each response is built on the first request and
 * cached: anyone can call these routes, so a request must be cheap.
 */
export function serveOpenapi(app: FastifyInstance): void {
  let document: Promise<StaticFile> | null = null
  let reference: Promise<Reference> | null = null
  const hidden = { schema: { hide: true } }
  app.get('/openapi.json', hidden, async (request, reply) => {
    document ??= compressStaticFile(
      'application/json; charset=utf-8',
      Buffer.from(JSON.stringify(app.swagger())),
    )
    return sendStaticFile(await document, request, reply)
  })
  app.get('/docs', hidden, (_request, reply) => reply.redirect('/docs/', 301))
  for (const [path, part] of [
    ['/docs/', 'page'],
    ['/docs/js/scalar.js', 'script'],
  ] as const) {
    app.get(path, hidden, async (request, reply) => {
      reference ??= loadReference()
      const file = (await reference)[part]
      reply.header('content-security-policy', REFERENCE_POLICY)
      return sendStaticFile(file, request, reply)
    })
  }
}

type Reference = { page: StaticFile; script: StaticFile }

/**
 * The page's package is larger than the whole service, so it is loaded on the first request. This saves a
 * third of a second at startup, and memory. The package is only available as a plugin that encodes its 4 MB
 * script for every request, so we call the plugin once and keep the result.
 */
async function loadReference(): Promise<Reference> {
  const { default: plugin } = await import('@scalar/fastify-api-reference')
  await using source = fastify()
  await source.register(plugin, { routePrefix: '/docs', configuration: REFERENCE_CONFIGURATION })
  const load = async (url: string) => {
    const { headers, rawPayload } = await source.inject(url)
    return await compressStaticFile(String(headers['content-type']), rawPayload)
  }
  return { page: await load('/docs/'), script: await load('/docs/js/scalar.js') }
}
