"""Robots: drones, cars, arms, pendulums, fields of potential, controllers."""

import functools
import math
from itertools import pairwise

import numpy as np

from .program import Wild


# A drone flies through corners -------------------------------------------------------------------
class TrajectoryGenerator:
    def __init__(self, start_pos, des_pos, T, start_vel=(0, 0, 0), des_vel=(0, 0, 0)):
        self.start, self.end, self.T = start_pos, des_pos, T
        self.start_vel, self.end_vel = start_vel, des_vel

    def solve(self):
        T = self.T
        A = np.array(
            [
                [0, 0, 0, 0, 0, 1],
                [T**5, T**4, T**3, T**2, T, 1],
                [0, 0, 0, 0, 1, 0],
                [5 * T**4, 4 * T**3, 3 * T**2, 2 * T, 1, 0],
                [0, 0, 0, 2, 0, 0],
                [20 * T**3, 12 * T**2, 6 * T, 2, 0, 0],
            ]
        )
        self.coefficients = []
        for k in range(3):
            b = np.array(
                [
                    [self.start[k]],
                    [self.end[k]],
                    [self.start_vel[k]],
                    [self.end_vel[k]],
                    [0],
                    [0],
                ]
            )
            self.coefficients.append(np.linalg.solve(A, b))


def calculate_position(c, t):
    return c[0] * t**5 + c[1] * t**4 + c[2] * t**3 + c[3] * t**2 + c[4] * t + c[5]


def calculate_velocity(c, t):
    return 5 * c[0] * t**4 + 4 * c[1] * t**3 + 3 * c[2] * t**2 + 2 * c[3] * t + c[4]


def calculate_acceleration(c, t):
    return 20 * c[0] * t**3 + 12 * c[1] * t**2 + 6 * c[2] * t + 2 * c[3]


def rotation_matrix(roll, pitch, yaw):
    return np.array(
        [
            [
                math.cos(yaw) * math.cos(pitch),
                -math.sin(yaw) * math.cos(roll) + math.cos(yaw) * math.sin(pitch) * math.sin(roll),
                math.sin(yaw) * math.sin(roll) + math.cos(yaw) * math.sin(pitch) * math.cos(roll),
            ],
            [
                math.sin(yaw) * math.cos(pitch),
                math.cos(yaw) * math.cos(roll) + math.sin(yaw) * math.sin(pitch) * math.sin(roll),
                -math.cos(yaw) * math.sin(roll) + math.sin(yaw) * math.sin(pitch) * math.cos(roll),
            ],
            [-math.sin(pitch), math.cos(pitch) * math.sin(roll), math.cos(pitch) * math.cos(yaw)],
        ]
    )


def drone(Kp_z, Kd_z, loops, steps):
    g, m, dt, T = 9.81, 0.2, 0.1, 5
    Kp = 25.0
    corners = [[-5, -5, 5], [5, -5, 5], [5, 5, 5], [-5, 5, 5]]
    x_coeffs, y_coeffs, z_coeffs = [[]] * 4, [[]] * 4, [[]] * 4
    for i in range(4):
        traj = TrajectoryGenerator(corners[i], corners[(i + 1) % 4], T)
        traj.solve()
        x_coeffs[i], y_coeffs[i], z_coeffs[i] = traj.coefficients
    x_pos, y_pos, z_pos = -5.0, -5.0, 5.0
    x_vel = y_vel = z_vel = 0.0
    roll = pitch = yaw = 0.0
    i, n_run, irun, path = 0, loops, 0, []
    while True:
        t = 0.0
        while t <= steps * dt:
            des_z_pos = calculate_position(z_coeffs[i], t)
            des_z_vel = calculate_velocity(z_coeffs[i], t)
            des_x_acc = calculate_acceleration(x_coeffs[i], t)
            des_y_acc = calculate_acceleration(y_coeffs[i], t)
            des_z_acc = calculate_acceleration(z_coeffs[i], t)
            thrust = m * (g + des_z_acc + Kp_z * (des_z_pos - z_pos) + Kd_z * (des_z_vel - z_vel))
            des_roll = (des_x_acc * math.sin(yaw) - des_y_acc * math.cos(yaw)) / g
            des_pitch = (des_x_acc * math.cos(yaw) - des_y_acc * math.sin(yaw)) / g
            roll += Kp / 10 * (des_roll[0] - roll) * dt
            pitch += Kp / 10 * (des_pitch[0] - pitch) * dt
            R = rotation_matrix(roll, pitch, yaw)
            lift = np.matmul(R, np.array([[0, 0, thrust.item()]]).T)
            acc = (lift - np.array([[0, 0, m * g]]).T) / m
            x_vel += acc[0, 0] * dt
            y_vel += acc[1, 0] * dt
            z_vel += acc[2, 0] * dt
            x_pos += x_vel * dt
            y_pos += y_vel * dt
            z_pos += z_vel * dt
            path.append([x_pos, y_pos, z_pos])
            t += dt
        t = 0
        i = (i + 1) % 4
        irun += 1
        if irun >= n_run:
            break
    return np.mean(np.array(path) ** 2)


# A car follows a course --------------------------------------------------------------------------
class State:
    def __init__(self, x=0.0, y=0.0, yaw=0.0, v=0.0, wheelbase=2.9):
        self.x, self.y, self.yaw, self.v, self.WB = x, y, yaw, v, wheelbase
        self.rear_x = self.x - ((self.WB / 2) * math.cos(self.yaw))
        self.rear_y = self.y - ((self.WB / 2) * math.sin(self.yaw))

    def update(self, a, delta, dt):
        self.x += self.v * math.cos(self.yaw) * dt
        self.y += self.v * math.sin(self.yaw) * dt
        self.yaw += self.v / self.WB * math.tan(delta) * dt
        self.v += a * dt
        self.rear_x = self.x - ((self.WB / 2) * math.cos(self.yaw))
        self.rear_y = self.y - ((self.WB / 2) * math.sin(self.yaw))

    def calc_distance(self, point_x, point_y):
        return math.hypot(self.rear_x - point_x, self.rear_y - point_y)


class States:
    def __init__(self):
        self.x, self.y, self.v, self.t = [], [], [], []

    def append(self, t, state):
        self.x.append(state.x)
        self.y.append(state.y)
        self.v.append(state.v)
        self.t.append(t)


class TargetCourse:
    def __init__(self, cx, cy):
        self.cx, self.cy = cx, cy
        self.old_nearest_point_index = None

    def search_target_index(self, state, k):
        if self.old_nearest_point_index is None:
            dx = [state.rear_x - icx for icx in self.cx]
            dy = [state.rear_y - icy for icy in self.cy]
            ind = np.argmin(np.hypot(dx, dy))
            self.old_nearest_point_index = ind
        else:
            ind = self.old_nearest_point_index
            distance_this_index = state.calc_distance(self.cx[ind], self.cy[ind])
            while True:
                if ind + 1 >= len(self.cx):
                    break
                distance_next_index = state.calc_distance(self.cx[ind + 1], self.cy[ind + 1])
                if distance_this_index < distance_next_index:
                    break
                ind = ind + 1
                distance_this_index = distance_next_index
            self.old_nearest_point_index = ind
        Lf = k * state.v + 2.0
        while Lf > state.calc_distance(self.cx[ind], self.cy[ind]):
            if (ind + 1) >= len(self.cx):
                break
            ind += 1
        return ind, Lf


def pure_pursuit(k, Kp, points, steps):
    cx = np.arange(0, points, 0.5)
    cy = [math.sin(ix / 5.0) * ix / 2.0 for ix in cx]
    state = State(x=-0.0, y=-3.0, yaw=0.0, v=0.0)
    states = States()
    states.append(0.0, state)
    course = TargetCourse(cx, cy)
    target_ind, _ = course.search_target_index(state, k)
    time, dt = 0.0, 0.1
    while dt * steps >= time and len(cx) - 1 > target_ind:
        ai = Kp * (10.0 / 3.6 - state.v)
        ind, Lf = course.search_target_index(state, k)
        if target_ind >= ind:
            ind = target_ind
        target_ind = ind
        alpha = math.atan2(cy[ind] - state.rear_y, cx[ind] - state.rear_x) - state.yaw
        di = math.atan2(2.0 * state.WB * math.sin(alpha) / Lf, 1.0)
        state.update(ai, di, dt)
        time += dt
        states.append(time, state)
    return sum(states.v) / len(states.v) + states.y[-1]


# Controllers -------------------------------------------------------------------------------------
def solve_DARE(A, B, Q, R, maxiter=150, eps=0.01):
    P = Q
    for i in range(maxiter):
        Pn = A.T @ P @ A - A.T @ P @ B @ np.linalg.inv(R + B.T @ P @ B) @ B.T @ P @ A + Q
        if (abs(Pn - P)).max() < eps:
            break
        P = Pn
    return Pn


def pendulum_lqr(mass, weight, nt):
    """A cart with a pendulum; the gain by iterating Riccati's equation anew at every step."""
    M, l_bar, g, delta_t = 1.0, 2.0, 9.8, 0.1
    x = np.array([[0.0], [0.0], [0.3], [0.0]])
    Q = np.diag([0.0, 1.0, 1.0, 0.0])
    R = weight * np.eye(1)
    cost = 0.0
    for _ in range(nt):
        A = np.array(
            [
                [0.0, 1.0, 0.0, 0.0],
                [0.0, 0.0, mass * g / M, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [0.0, 0.0, g * (M + mass) / (l_bar * M), 0.0],
            ]
        )
        A = np.eye(4) + delta_t * A
        B = delta_t * np.array([[0.0], [1.0 / M], [0.0], [1.0 / (l_bar * M)]])
        P = solve_DARE(A, B, Q, R)
        K = np.linalg.inv(B.T @ P @ B + R) @ (B.T @ P @ A)
        u = -K @ x
        x = A @ x + B @ u
        cost += float((x.T @ Q @ x + weight * u * u).item())
    return cost


class PID:
    """Callable, with limits and a memory of the last error."""

    def __init__(self, Kp, Ki, Kd, limits=(-10.0, 10.0)):
        self.Kp, self.Ki, self.Kd = Kp, Ki, Kd
        self.limits = limits
        self._integral, self._last_error, self._last_output = 0.0, None, None

    @property
    def output_limits(self):
        return self.limits

    def __call__(self, error, dt):
        d_error = 0.0 if self._last_error is None else (error - self._last_error) / dt
        self._integral += self.Ki * error * dt
        low, high = self.output_limits
        self._integral = min(max(self._integral, low), high)
        output = self.Kp * error + self._integral + self.Kd * d_error
        output = min(max(output, low), high)
        self._last_error, self._last_output = error, output
        return output


def boiler(Kp, Ki, nt):
    pid = PID(Kp, Ki, 0.05)
    temperature, setpoint, dt = 20.0, 30.0, 0.1
    record = {"t": [], "temperature": [], "power": []}
    for k in range(nt):
        if k == nt // 2:
            setpoint = 35.0
        power = pid(setpoint - temperature, dt)
        if power > 0:
            temperature += 1.0 * power * dt
        temperature -= 0.2 * (temperature - 15.0) * dt
        record["t"].append(k * dt)
        record["temperature"].append(temperature)
        record["power"].append(power)
    return np.mean(record["temperature"]) + np.mean(np.array(record["power"]) ** 2) * 1e-2


def predictive_control(target, effort, horizon, nt):
    """Gradient steps on the inputs over a horizon; the first input is applied, the rest shifted."""

    def simulate(u, x0, v0):
        x, v, xs = x0, v0, []
        for a in u:
            v = v + 0.1 * (a - 0.3 * v)
            x = x + 0.1 * v
            xs.append(x)
        return np.stack(xs)

    sensitivity = np.stack(
        [
            simulate(np.eye(horizon)[k], 0.0, 0.0) - simulate(np.zeros(horizon), 0.0, 0.0)
            for k in range(horizon)
        ]
    )
    x, v, u = 0.0, 0.0, np.zeros(horizon)
    travelled = []
    for step in range(nt):
        for _ in range(5):
            xs = simulate(u, x, v)
            gradient = 2 * sensitivity @ (xs - target) + 2 * effort * u
            u = u - 0.05 * gradient
            u = np.clip(u, -2.0, 2.0)
        v = v + 0.1 * (u[0] - 0.3 * v)
        x = x + 0.1 * v
        u = np.append(u[1:], 0.0)
        travelled.append(x)
    return sum((t - target) ** 2 for t in travelled)


# Arms and paths ----------------------------------------------------------------------------------
class Arm:
    def __init__(self, link_lengths):
        self.link_lengths = np.array(link_lengths)
        self._angles = np.zeros(len(link_lengths))
        self.points = [[0.0, 0.0] for _ in range(len(link_lengths) + 1)]
        self.update_points()

    @property
    def angles(self):
        return self._angles

    @angles.setter
    def angles(self, values):
        self._angles = values
        self.update_points()

    def update_points(self):
        for i in range(1, len(self.points)):
            total = np.sum(self._angles[:i])
            self.points[i][0] = self.points[i - 1][0] + self.link_lengths[i - 1] * np.cos(total)
            self.points[i][1] = self.points[i - 1][1] + self.link_lengths[i - 1] * np.sin(total)

    @property
    def end_effector(self):
        return np.array(self.points[-1])

    def jacobian(self):
        n = len(self.link_lengths)
        J = np.zeros((2, n))
        for i in range(n):
            for j in range(i, n):
                total = np.sum(self._angles[: j + 1])
                J[0, i] -= self.link_lengths[j] * np.sin(total)
                J[1, i] += self.link_lengths[j] * np.cos(total)
        return J


def arm_to_point(x, y, links, nt):
    arm = Arm([1.0] * links)
    arm.angles = np.linspace(0.1, 0.4, links)
    goal = np.array([x, y])
    for _ in range(nt):
        errors = goal - arm.end_effector
        J = arm.jacobian()
        step = J.T @ np.linalg.solve(J @ J.T + 0.01 * np.eye(2), errors)
        arm.angles = arm.angles + 0.2 * step
    return np.sum(arm.angles**2) + np.sum((goal - arm.end_effector) ** 2)


def elastic_band(repulsion, tension, n, nt):
    """A path of points between start and goal is pushed away from obstacles."""
    obstacles = [(2.0, 0.6, 0.8), (4.0, -0.5, 0.9)]
    path = [np.array([6.0 * k / (n - 1), 0.05 * math.sin(k)]) for k in range(n)]
    for _ in range(nt):
        new = [path[0]]
        for before, here, after in zip(path, path[1:], path[2:]):
            force = tension * (before - 2 * here + after)
            for ox, oy, radius in obstacles:
                away = here - np.array([ox, oy])
                distance = np.linalg.norm(away)
                if distance < 2 * radius:
                    force = force + repulsion * (2 * radius - distance) * away / distance
            new.append(here + 0.1 * force)
        new.append(path[-1])
        path = new
    lengths = [np.linalg.norm(b - a) for a, b in pairwise(path)]
    return functools.reduce(lambda a, b: a + b, lengths)


ROBOTS = (
    Wild(drone, lambda n, nt: (1.0, 1.0, n, nt), (1, 8), (4, 50)),
    Wild(pure_pursuit, lambda n, nt: (0.1, 1.0, n, nt), (10, 10), (50, 250), step=1e-6),
    Wild(pendulum_lqr, lambda n: (0.3, 0.1, n), (3,), (50,), step=1e-5),
    Wild(boiler, lambda n: (1.5, 0.2, n), (12,), (5000,), step=1e-5),
    Wild(predictive_control, lambda h, n: (1.0, 0.01, h, n), (4, 3), (15, 40)),
    Wild(arm_to_point, lambda n, nt: (1.2, 1.0, n, nt), (3, 4), (4, 100)),
    Wild(elastic_band, lambda n, nt: (0.5, 1.0, n, nt), (5, 4), (25, 60), step=1e-5),
)
