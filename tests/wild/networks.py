"""Neurons and networks: membranes, spikes, letters, reservoirs, perceptrons, by hand."""

import math
from functools import partial

import numpy as np

from .program import Wild

# A membrane by scalar helpers --------------------------------------------------------------------
C_m, g_Na, g_K, g_L = 1.0, 120.0, 36.0, 0.3
E_Na, E_K, E_L = 50.0, -77.0, -54.387


def alpha_n(V):
    return 0.01 * (V + 55.0) / (1 - math.exp(-(V + 55.0) / 10.0))


def beta_n(V):
    return 0.125 * math.exp(-(V + 65.0) / 80.0)


def alpha_m(V):
    return 0.1 * (V + 40.0) / (1 - math.exp(-(V + 40.0) / 10.0))


def beta_m(V):
    return 4.0 * math.exp(-(V + 65.0) / 18.0)


def alpha_h(V):
    return 0.07 * math.exp(-(V + 65.0) / 20.0)


def beta_h(V):
    return 1.0 / (1 + math.exp(-(V + 35.0) / 10.0))


def I_inj(t, I0):
    return I0 * (t > 0.02) - I0 * (t > 6)


def dALLdt(X, t, I0, gNa):
    V, m, h, n = X
    I_Na = gNa * m**3 * h * (V - E_Na)
    I_K = g_K * n**4 * (V - E_K)
    I_L = g_L * (V - E_L)
    dV = (I_inj(t, I0) - I_Na - I_K - I_L) / C_m
    dm = alpha_m(V) * (1.0 - m) - beta_m(V) * m
    dh = alpha_h(V) * (1.0 - h) - beta_h(V) * h
    dn = alpha_n(V) * (1.0 - n) - beta_n(V) * n
    return dV, dm, dh, dn


def rk4_step(f, X, t, dt):
    k1 = f(X, t)
    k2 = f([x + dt / 2 * k for x, k in zip(X, k1)], t + dt / 2)
    k3 = f([x + dt / 2 * k for x, k in zip(X, k2)], t + dt / 2)
    k4 = f([x + dt * k for x, k in zip(X, k3)], t + dt)
    return [x + dt / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip(X, k1, k2, k3, k4)]


def hodgkin_huxley(I0, gNa, nt):
    dt = 0.01
    X = [-65.0, 0.05, 0.6, 0.32]
    f = partial(dALLdt, I0=I0, gNa=gNa)
    voltages = []
    for i in range(nt):
        X = rk4_step(f, X, i * dt, dt)
        voltages.append(X[0])
    return max(voltages) + sum(v * v for v in voltages) / nt * 1e-3


# Spiking networks --------------------------------------------------------------------------------
def izhikevich(excitation, drive, Ne, nt):
    """A thousand neurons in eighty lines; those that fired by the indices of a condition."""
    np.random.seed(5)
    Ni = Ne // 4
    re, ri = np.random.rand(Ne), np.random.rand(Ni)
    a = np.hstack([0.02 * np.ones(Ne), 0.02 + 0.08 * ri])
    b = np.hstack([0.2 * np.ones(Ne), 0.25 - 0.05 * ri])
    c = np.hstack([-65 + 15 * re**2, -65 * np.ones(Ni)])
    d = np.hstack([8 - 6 * re**2, 2 * np.ones(Ni)])
    S = np.hstack([excitation * np.random.rand(Ne + Ni, Ne), -np.random.rand(Ne + Ni, Ni)])
    v = -65 * np.ones(Ne + Ni)
    u = b * v
    firings = []
    for t in range(nt):
        I = np.hstack([drive * np.random.randn(Ne), 2 * np.random.randn(Ni)])
        fired = np.where(v >= 30)[0]
        firings.append(len(fired))
        v[fired] = c[fired]
        u[fired] = u[fired] + d[fired]
        I = I + np.sum(S[:, fired], axis=1)
        v = v + 0.5 * (0.04 * v**2 + 5 * v + 140 - u + I)
        v = v + 0.5 * (0.04 * v**2 + 5 * v + 140 - u + I)
        u = u + a * (b * v - u)
    return np.mean(np.minimum(v, 30.0)) + sum(firings) / nt


def leaky_spikes(tau, current, nt):
    """One neuron; the times of its spikes are appended where the threshold is crossed."""
    dt, v, v_reset, v_th = 0.1, 0.0, 0.0, 1.0
    spikes, trace, last = [], [], None
    for i in range(nt):
        t = i * dt
        if last is not None and t - last < 2.0:
            v = v_reset
        else:
            v += dt / tau * (-v + current * (1 + 0.2 * math.sin(0.1 * t)))
        if v > v_th:
            spikes.append(t)
            last = t
            v = v_reset
        trace.append(v)
    return sum(trace) / nt + 0.01 * len(spikes)


# Letters -----------------------------------------------------------------------------------------
def lossFun(inputs, targets, hprev, Wxh, Whh, Why, bh, by):
    """Loss and gradients by hand, back through time, with dictionaries of the steps."""
    vocab_size = Wxh.shape[1]
    xs, hs, ys, ps = {}, {}, {}, {}
    hs[-1] = np.copy(hprev)
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((vocab_size, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
        ys[t] = np.dot(Why, hs[t]) + by
        ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
        loss += -np.log(ps[t][targets[t], 0])
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        dhraw = (1 - hs[t] * hs[t]) * dh
        dbh += dhraw
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    for dparam in [dWxh, dWhh, dWhy, dbh, dby]:
        np.clip(dparam, -5, 5, out=dparam)
    return loss, dWxh, dWhh, dWhy, dbh, dby, hs[len(inputs) - 1]


def letters(learning_rate, scale, hidden_size, iterations):
    """Adagrad over a text, a sequence at a time, the pointer going back to its start."""
    data = "the quick brown fox jumps over the lazy dog and the dog sleeps on. "
    chars = sorted(set(data))
    vocab_size = len(chars)
    char_to_ix = {ch: i for i, ch in enumerate(chars)}
    seq_length = 8
    np.random.seed(0)
    Wxh = np.random.randn(hidden_size, vocab_size) * scale
    Whh = np.random.randn(hidden_size, hidden_size) * scale
    Why = np.random.randn(vocab_size, hidden_size) * scale
    bh, by = np.zeros((hidden_size, 1)), np.zeros((vocab_size, 1))
    n, p = 0, 0
    mWxh, mWhh, mWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    mbh, mby = np.zeros_like(bh), np.zeros_like(by)
    smooth_loss = -np.log(1.0 / vocab_size) * seq_length
    while n < iterations:
        if p + seq_length + 1 >= len(data) or n == 0:
            hprev = np.zeros((hidden_size, 1))
            p = 0
        inputs = [char_to_ix[ch] for ch in data[p : p + seq_length]]
        targets = [char_to_ix[ch] for ch in data[p + 1 : p + seq_length + 1]]
        loss, dWxh, dWhh, dWhy, dbh, dby, hprev = lossFun(
            inputs, targets, hprev, Wxh, Whh, Why, bh, by
        )
        smooth_loss = smooth_loss * 0.999 + loss * 0.001
        if n % 100 == 0:
            print("iter %d, loss: %f" % (n, smooth_loss))
        for param, dparam, mem in zip(
            [Wxh, Whh, Why, bh, by], [dWxh, dWhh, dWhy, dbh, dby], [mWxh, mWhh, mWhy, mbh, mby]
        ):
            mem += dparam * dparam
            param += -learning_rate * dparam / np.sqrt(mem + 1e-8)
        p += seq_length
        n += 1
    return smooth_loss + loss


# A reservoir -------------------------------------------------------------------------------------
class EchoState:
    def __init__(self, n_inputs, n_reservoir, spectral_radius=0.95, leak=0.3, random_state=None):
        self.random_state_ = (
            random_state
            if isinstance(random_state, np.random.RandomState)
            else np.random.RandomState(random_state)
        )
        self.n_inputs, self.n_reservoir, self.leak = n_inputs, n_reservoir, leak
        self.spectral_radius = spectral_radius
        self.initweights()

    def initweights(self):
        W = self.random_state_.rand(self.n_reservoir, self.n_reservoir) - 0.5
        W[self.random_state_.rand(*W.shape) < 0.2] = 0
        radius = np.max(np.abs(np.linalg.eigvals(W)))
        self.W = W * (self.spectral_radius / radius)
        self.W_in = self.random_state_.rand(self.n_reservoir, self.n_inputs + 1) * 2 - 1

    def _update(self, state, u):
        pre = np.dot(self.W, state) + np.dot(self.W_in, np.hstack((1.0, u)))
        return (1 - self.leak) * state + self.leak * np.tanh(pre)

    def fit(self, inputs, outputs, ridge):
        states = np.zeros((inputs.shape[0], self.n_reservoir))
        for n in range(1, inputs.shape[0]):
            states[n, :] = self._update(states[n - 1], inputs[n - 1])
        X = states[5:]
        self.W_out = np.linalg.solve(X.T @ X + ridge * np.eye(self.n_reservoir), X.T @ outputs[5:])
        self.laststate = states[-1, :]
        pred_train = np.dot(states, self.W_out)
        print("training error:", np.sqrt(np.mean((pred_train - outputs) ** 2)))
        return pred_train

    def predict(self, n_future, u):
        x, out = self.laststate, []
        for _ in range(n_future):
            x = self._update(x, u)
            u = np.dot(x, self.W_out)
            out.append(u)
        return np.array(out)


def echo_state(radius, ridge, n_reservoir, nt):
    t = np.arange(nt + 1) * 0.3
    data = np.sin(t) * np.cos(0.31 * t)
    net = EchoState(1, n_reservoir, spectral_radius=radius, random_state=42)
    fitted = net.fit(data[:-1, None], data[1:, None], ridge)
    future = net.predict(10, data[-1:])
    return np.mean(fitted**2) + np.mean(future**2)


# A perceptron ------------------------------------------------------------------------------------
class Network:
    def __init__(self, sizes, rng):
        self.num_layers = len(sizes)
        self.biases = [rng.standard_normal((y, 1)) for y in sizes[1:]]
        self.weights = [
            rng.standard_normal((y, x)) / np.sqrt(x) for x, y in zip(sizes[:-1], sizes[1:])
        ]

    def feedforward(self, a):
        for b, w in zip(self.biases, self.weights):
            a = sigmoid(np.dot(w, a) + b)
        return a

    def SGD(self, training_data, epochs, mini_batch_size, eta):
        n = len(training_data)
        for j in range(epochs):
            mini_batches = [
                training_data[k : k + mini_batch_size] for k in range(0, n, mini_batch_size)
            ]
            for mini_batch in mini_batches:
                self.update_mini_batch(mini_batch, eta)
            print(f"Epoch {j} complete")

    def update_mini_batch(self, mini_batch, eta):
        nabla_b = [np.zeros(b.shape) for b in self.biases]
        nabla_w = [np.zeros(w.shape) for w in self.weights]
        for x, y in mini_batch:
            delta_nabla_b, delta_nabla_w = self.backprop(x, y)
            nabla_b = [nb + dnb for nb, dnb in zip(nabla_b, delta_nabla_b)]
            nabla_w = [nw + dnw for nw, dnw in zip(nabla_w, delta_nabla_w)]
        self.weights = [w - (eta / len(mini_batch)) * nw for w, nw in zip(self.weights, nabla_w)]
        self.biases = [b - (eta / len(mini_batch)) * nb for b, nb in zip(self.biases, nabla_b)]

    def backprop(self, x, y):
        nabla_b = [np.zeros(b.shape) for b in self.biases]
        nabla_w = [np.zeros(w.shape) for w in self.weights]
        activation, activations, zs = x, [x], []
        for b, w in zip(self.biases, self.weights):
            z = np.dot(w, activation) + b
            zs.append(z)
            activation = sigmoid(z)
            activations.append(activation)
        delta = (activations[-1] - y) * sigmoid(zs[-1]) * (1 - sigmoid(zs[-1]))
        nabla_b[-1] = delta
        nabla_w[-1] = np.dot(delta, activations[-2].transpose())
        for layer in range(2, self.num_layers):
            z = zs[-layer]
            sp = sigmoid(z) * (1 - sigmoid(z))
            delta = np.dot(self.weights[-layer + 1].transpose(), delta) * sp
            nabla_b[-layer] = delta
            nabla_w[-layer] = np.dot(delta, activations[-layer - 1].transpose())
        return nabla_b, nabla_w


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def perceptron_sgd(eta, scale, hidden, epochs):
    """Batches of pairs in a list; what the fit reaches as a function of its rate."""
    rng = np.random.default_rng(3)
    xs = rng.standard_normal((40, 4, 1))
    training_data = [(scale * x, np.array([[float(x.sum() > 0)]])) for x in xs]
    net = Network([4, hidden, 1], rng)
    net.SGD(training_data, epochs, 10, eta)
    return sum(float(((net.feedforward(x) - y) ** 2).sum()) for x, y in training_data) / 40


NETWORKS = (
    Wild(hodgkin_huxley, lambda nt: (10.0, 120.0, nt), (12,), (1500,)),
    Wild(izhikevich, lambda n, nt: (0.5, 5.0, n, nt), (8, 12), (200, 300), step=1e-5),
    Wild(leaky_spikes, lambda nt: (8.0, 1.4, nt), (150,), (5000,), step=1e-6),
    Wild(letters, lambda n, nt: (0.01, 0.1, n, nt), (4, 3), (50, 100)),
    # its ridge regression has the condition 1.2e4, and is solved once in each sweep
    Wild(echo_state, lambda n, nt: (0.9, 1e-3, n, nt), (6, 15), (60, 1000), step=1e-4, ulp=5e4),
    Wild(perceptron_sgd, lambda n, nt: (0.5, 1.0, n, nt), (3, 1), (15, 10)),
)
