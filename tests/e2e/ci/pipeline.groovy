// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a declarative pipeline as Jenkins would: pipeline.groovy JENKINSFILE. The last line printed is the
// result: passed, unstable or failed. Credentials are $SECRET.
class Failure extends RuntimeException {
    Failure(String message) { super(message) }
}

class Environment {
    Map values
    Object credentials(String name) { values.SECRET }
    Object getProperty(String name) { name == 'env' ? values : values[name] }
    void setProperty(String name, Object value) { values[name] = value.toString() }
}

class Pipeline {
    Map env = new HashMap(System.getenv())
    Object any
    String result = 'passed'

    void call(Closure c) {
        c.delegate = this
        c.resolveStrategy = Closure.DELEGATE_FIRST
        c()
    }
    void pipeline(Closure c) { call(c) }
    void agent(Object where) { }
    void environment(Closure c) {
        c.delegate = new Environment(values: env)
        c.resolveStrategy = Closure.DELEGATE_ONLY
        c()
    }
    void stages(Closure c) { call(c) }
    void stage(String name, Closure c) {
        failure = null
        call(c)
        if (failure)
            throw failure
    }
    Failure failure
    void steps(Closure c) {
        try {
            call(c)
        } catch (Failure f) {
            failure = f
        }
    }
    void post(Closure c) { call(c) }
    void always(Closure c) { call(c) }
    void script(Closure c) { call(c) }
    Object sh(String script) {
        if (sh(script: script, returnStatus: true) != 0)
            throw new Failure('a step failed')
    }
    int sh(Map options) {
        def process = new ProcessBuilder('sh', '-xe', '-c', options.script)
        process.environment().clear()
        process.environment().putAll(env)
        def status = process.redirectErrorStream(true).inheritIO().start().waitFor()
        if (status != 0 && !options.returnStatus)
            throw new Failure('a step failed')
        return status
    }
    void unstable(String message) {
        println message
        result = 'unstable'
    }
    void error(String message) { throw new Failure(message) }
    void junit(Map options) { need(options.testResults) }
    void archiveArtifacts(Map options) { options.artifacts.split(', ').each { need(it) } }
    void need(String file) {
        if (!new File(file).exists())
            throw new Failure("no file $file")
    }
}

def pipeline = new Pipeline()
def script = new GroovyShell().parse(new File(args[0]))
script.metaClass.pipeline = { Closure c -> pipeline.pipeline(c) }
try {
    script.run()
} catch (Failure f) {
    println f.message
    pipeline.result = 'failed'
}
println pipeline.result
