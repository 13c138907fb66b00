// Package frameworks_test mounts a server with limits in the web frameworks that people use, and writes down what that
// does to refusals, streams and connections: docs/guide/redis.md has the table. It is a module of its own, because
// the library needs none of them.
package frameworks_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	fiber2 "github.com/gofiber/fiber/v2"
	adaptor2 "github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	echo4 "github.com/labstack/echo/v4"
	middleware4 "github.com/labstack/echo/v4/middleware"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/require"
)

// contextKey is where a middleware of the framework puts a value, as authentication does.
type contextKey struct{}

// localKey is where a middleware of fiber puts one besides.
type localKey struct{}

// timeout is that of the middlewares that have one. It is longer than a first event takes.
const timeout = 2 * time.Second

// mounting is a way to serve a handler.
type mounting struct {
	// title is how the table calls it.
	title string
	// serve serves the handler on a free port until the test ends, and returns the address.
	serve func(t *testing.T, handler http.Handler) string
}

var mountings = []mounting{
	{"net/http", func(t *testing.T, h http.Handler) string {
		t.Helper()
		return serveHTTP(t, withValue(h))
	}},
	{"`http.TimeoutHandler`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		return serveHTTP(t, withValue(http.TimeoutHandler(h, timeout, "")))
	}},
	{"chi v5.2.3 with `RealIP`, `Compress`, `Recoverer`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		router := chi.NewRouter()
		router.Use(middleware.RealIP, middleware.Compress(5), middleware.Recoverer, withValue)
		router.Handle("/query", h)
		return serveHTTP(t, router)
	}},
	{"chi v5.2.3 with `Timeout`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		router := chi.NewRouter()
		router.Use(middleware.Timeout(timeout), withValue)
		router.Handle("/query", h)
		return serveHTTP(t, router)
	}},
	{"gin v1.12.0, `gin.WrapH`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		gin.SetMode(gin.ReleaseMode)
		engine := gin.New()
		engine.Use(gin.Recovery(), func(c *gin.Context) { c.Request = valued(c.Request) })
		engine.Any("/query", gin.WrapH(h))
		return serveHTTP(t, engine)
	}},
	{"echo v4.13.4, `echo.WrapHandler`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		return serveHTTP(t, newEcho4(h))
	}},
	{"echo v4.13.4 with `Gzip`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		return serveHTTP(t, newEcho4(h, middleware4.Gzip()))
	}},
	{"echo v5.0.0, `echo.WrapHandler`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		router := echo.New()
		router.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.SetRequest(valued(c.Request()))
				return next(c)
			}
		})
		router.Any("/query", echo.WrapHandler(h))
		return serveHTTP(t, router)
	}},
	{"fiber v2.52.9, `adaptor.HTTPHandler`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		app := fiber2.New(fiber2.Config{DisableStartupMessage: true})
		app.Use(func(c *fiber2.Ctx) error {
			c.SetUserContext(context.WithValue(c.UserContext(), contextKey{}, true))
			c.Locals(localKey{}, true)
			return c.Next()
		})
		app.All("/query", adaptor2.HTTPHandler(h))
		listener := listen(t)
		go func() { _ = app.Listener(listener) }()
		t.Cleanup(func() { _ = app.ShutdownWithTimeout(time.Second) })
		return listener.Addr().String()
	}},
	{"fiber v3.0.0, `adaptor.HTTPHandler`", func(t *testing.T, h http.Handler) string {
		t.Helper()
		app := fiber.New()
		app.Use(func(c fiber.Ctx) error {
			c.SetContext(context.WithValue(c.Context(), contextKey{}, true))
			c.Locals(localKey{}, true)
			return c.Next()
		})
		app.All("/query", adaptor.HTTPHandler(h))
		listener := listen(t)
		go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
		t.Cleanup(func() { _ = app.ShutdownWithTimeout(time.Second) })
		return listener.Addr().String()
	}},
}

func newEcho4(h http.Handler, middlewares ...echo4.MiddlewareFunc) http.Handler {
	router := echo4.New()
	router.Use(middlewares...)
	router.Use(func(next echo4.HandlerFunc) echo4.HandlerFunc {
		return func(c echo4.Context) error {
			c.SetRequest(valued(c.Request()))
			return next(c)
		}
	})
	router.Any("/query", echo4.WrapHandler(h))
	return router
}

// valued returns the request with a value in its context.
func valued(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), contextKey{}, true))
}

func withValue(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, valued(r)) })
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

// serveHTTP serves by net/http.
func serveHTTP(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener := listen(t)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}
