package serve_test

import _ "github.com/chromedp/chromedp"
