import { fastify } from 'fastify'

/** The baseline: Fastify parsing a body and returning an id, and nothing else. */
const app = fastify()
app.post('/v1/events', async (_request, reply) => {
  reply.code(201)
  return { id: '00000000-0000-7000-8000-000000000000' }
})
const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${address}\n`)
process.on('SIGTERM', () => void app.close())
