// Answers each request with the sum of what it allocates for it; for the recipe in docs/recipes.md.
require('http').createServer((request, response) => {
    let total = Buffer.alloc(1 << 20).length;
    for (let i = 0; i < 10000; i++) total += Buffer.from(String(i)).length;
    response.end(`sum ${total}`);
}).listen(Number(process.env.PORT), '127.0.0.1');
