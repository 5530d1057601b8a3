import { Annals } from '@annals/sdk'
import { receiveFastify, recordFastify } from '@annals/sdk/fastify'
import { fastify } from 'fastify'

const { ANNALS_API_URL = '', ANNALS_API_KEY = '', ANNALS_WEBHOOK_SECRET = '' } = process.env

const annals = new Annals({ apiKey: ANNALS_API_KEY, baseUrl: ANNALS_API_URL })
const recorder = annals.recorder({ onRefused: console.error, onError: console.error })
const app = fastify({ forceCloseConnections: 'idle' })

recordFastify(app, recorder, {
  actor: ({ headers }) => ({ id: String(headers['x-user']) }),
  skip: (_request, { route }) => route === '/annals',
})
app.register(
  receiveFastify('/annals', ANNALS_WEBHOOK_SECRET, ({ event }) => {
    console.log(`received ${event.action}`)
  }),
)

app.post('/invoices/:id/pay', async () => ({ paid: true }))

// Sends what is still queued.
app.addHook('onClose', async () => void (await recorder.close()))

await app.listen({ port: Number(process.env.PORT ?? 3_000) })
console.log('listening', app.server.address())
process.once('SIGTERM', () => void app.close())
