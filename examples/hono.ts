import { Annals } from '@annals/sdk'
import { receiveHono, recordHono } from '@annals/sdk/hono'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { routePath } from 'hono/route'

const { ANNALS_API_URL = '', ANNALS_API_KEY = '', ANNALS_WEBHOOK_SECRET = '' } = process.env

const annals = new Annals({ apiKey: ANNALS_API_KEY, baseUrl: ANNALS_API_URL })
const recorder = annals.recorder({ onRefused: console.error, onError: console.error })
const app = new Hono()

app.post(
  '/annals',
  receiveHono(ANNALS_WEBHOOK_SECRET, ({ event }) => console.log(`received ${event.action}`)),
)
app.use(async (context, next) => {
  const actor = () => ({ id: context.req.header('x-user') ?? 'unknown' })
  await recordHono(recorder, { actor, route: () => routePath(context, -1) })(context, next)
})

app.post('/invoices/:id/pay', (context) => context.json({ paid: true }))

const options = { fetch: app.fetch, port: Number(process.env.PORT ?? 3_000), hostname: '127.0.0.1' }
const server = serve(options, (address) => console.log('listening', address))

process.once('SIGTERM', () => {
  server.close()
  // Sends what is still queued.
  void recorder.close()
})
