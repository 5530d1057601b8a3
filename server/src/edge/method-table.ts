import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

/** Tells a wrong method (405 with `Allow`) from a path that does not exist (404). */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    routes.push({ pattern: patternOf(url), methods: [method].flat() })
  })
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const allowed = routes
      .filter(({ pattern }) => pattern.test(path))
      .flatMap(({ methods }) => methods)
    if (allowed.length === 0) throw new ApiError('not_found', { message: 'No such path.' })
    reply.header('allow', [...new Set(allowed)].toSorted().join(', '))
    throw new ApiError('method_not_allowed')
  })
}

function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^${escaped.replaceAll(/:[A-Za-z]+/g, '[^/]+').replaceAll('*', '.*')}$`)
}
