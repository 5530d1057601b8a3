import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'

/**
 * Distinguishes a wrong method (405 with `Allow`) from a path that does not exist (404). It runs before
 * the body is read; Fastify would parse the body first and report its errors instead.
 */
export function handleUnknownRoutes(app: FastifyInstance): void {
  const routes = new Map<string, { pattern: RegExp; methods: string[] }>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = [method].flat()
    const known = routes.get(url)
    if (known) known.methods.push(...methods)
    else routes.set(url, { pattern: patternOf(url), methods })
  })
  const refusalOf = (request: FastifyRequest, reply: FastifyReply): ApiError => {
    const path = request.url.split('?', 1)[0] ?? ''
    const allowed = [...routes.values()]
      .filter(({ pattern }) => pattern.test(path))
      .flatMap(({ methods }) => methods)
    if (allowed.length === 0) return new ApiError('not_found', { message: 'No such path.' })
    reply.header('allow', [...new Set(allowed)].toSorted().join(', '))
    return new ApiError('method_not_allowed')
  }
  app.addHook('onRequest', (request, reply, done) => {
    done(request.is404 ? refusalOf(request, reply) : undefined)
  })
  // For a route that finds nothing itself, such as the dashboard's static files.
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    throw refusalOf(request, reply)
  })
}

function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^${escaped.replaceAll(/:[A-Za-z]+/g, '[^/]+').replaceAll('*', '.*')}$`)
}
