// Package openai serves a model in the form of OpenAI's HTTP API: /v1/models, /v1/completions and
// /v1/chat/completions.
//
// # Concepts
//
// A Handler answers from an inference.Engine, which computes the tokens of several requests in one
// step. Until Open has given it one, requests are answered with 503. A parameter that cannot be
// served is an error with its name, unless it has the value that changes nothing.
//
// # Concurrency
//
// A Handler is safe for concurrent use. A client that goes away frees its place in the engine.
//
// # Errors
//
// Requests are answered with {"error": {"message", "type", "param", "code"}}, as OpenAI's.
package openai
