import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import { serve } from '@hono/node-server'

/**
 * Serves the route handlers of an App Router example, because Next.js is too large to be installed for one
 * test. The argument is the folder of the example. The handlers get what Next.js passes: a web request.
 */
const folder = process.argv[2] ?? ''
type Handler = (request: Request, context: object) => Promise<Response>

async function load(path: string): Promise<Handler> {
  const { POST }: { POST: Handler } = await import(
    pathToFileURL(join(folder, 'app', path, 'route.ts')).href
  )
  return POST
}

const receive = await load('annals')
const pay = await load('api/invoices/[id]/pay')
const server = serve(
  {
    fetch: (request) => (request.url.endsWith('/annals') ? receive : pay)(request, {}),
    port: 0,
    hostname: '127.0.0.1',
  },
  (address) => console.log('listening', address),
)
process.once('SIGTERM', () => server.close())
