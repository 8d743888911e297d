// Package posttrain reads examples to fine-tune with: conversations, prompts with responses, and
// pairs of a chosen and a rejected answer.
//
// # Concepts
//
// Examples are lines of JSON. Read turns them into token ids with the tokenizer and its chat
// template, each with a weight that says whether the model is to learn it: answers count, what
// comes before them does not. A text is encoded in the parts in which a model sees it, the prompt
// apart from the answer, so that training and generation have the same ids.
//
// A Set puts examples into rows of one length, several per row with Packing, where each is a
// document that attends to itself only. Its Sampler visits the rows in an order that is a function
// of seed and epoch, and Pairs are the two halves that the loss of DPO compares.
//
// # Concurrency
//
// A Set is immutable. A Sampler and an Evaluation belong to one goroutine.
//
// # Errors
//
// Errors name the file, the line and what is wrong in it. An example that is longer than a row is
// left out and counted.
package posttrain
